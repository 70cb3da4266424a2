"""The one exception that a user is meant to read."""


class UserError(ValueError):
    """Something the user can put right: one plain sentence that names the fault and the remedy.

    The command line prints it without a traceback; `HYDRA_FULL_ERROR=1` shows the traceback.
    """
