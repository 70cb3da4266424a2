"""Whether the model hub answers, asked once and without retries.

huggingface_hub tries each request six times and has no setting for that, so that a hub which cannot
be reached is told of after half a minute a file, or after minutes where packets are lost.
"""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)


def ask_hub() -> None:
    """Send one request to the hub; any answer will do.

    It takes at most ``HF_HUB_ETAG_TIMEOUT`` seconds (10 by default), and goes through the session
    that huggingface_hub uses, with its proxies and ``HF_ENDPOINT``.

    Raises:
        Exception: of the HTTP library, where there is no answer; of huggingface_hub, where
            ``HF_HUB_OFFLINE`` is set.
    """
    from huggingface_hub import constants, get_session

    get_session().head(constants.ENDPOINT, timeout=constants.HF_HUB_ETAG_TIMEOUT)


def hub_answers() -> bool:
    """Whether `ask_hub` got an answer."""
    try:
        ask_hub()
    # The hub's HTTP library changes with its version, so its faults share no class but this.
    except Exception as fault:
        log.debug("the hub does not answer: %s", fault)
        return False
    return True
