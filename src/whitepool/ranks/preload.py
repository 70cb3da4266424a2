"""What every process of a pass needs, imported once by the server that they are forked from."""

from whitepool.quiet import quiet_libraries

quiet_libraries()
