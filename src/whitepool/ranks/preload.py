"""What every process of a pass needs, imported once by the server that they are forked from."""

import torchmetrics  # noqa: F401

import whitepool.bulk.run
import whitepool.corpus_pass
import whitepool.encoding  # noqa: F401
from whitepool.quiet import quiet_libraries

quiet_libraries()
