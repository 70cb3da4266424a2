from __future__ import annotations

from typing import Any

import pytest

from whitepool.bulk.settings import Settings
from whitepool.errors import UserError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"format": "csv"}, "format is 'csv': choose one of parquet, npy."),
        ({"dtype": "int8"}, "dtype is 'int8': choose one of float32, float16."),
        ({"on_bad": "drop"}, "on_bad is 'drop': choose one of error, skip, zero."),
        ({"shard_rows": 0}, "shard_rows is 0: give a whole number from 1."),
        ({"shard_rows": 1.5}, "shard_rows is 1.5: give a whole number from 1."),
        ({"keep_text": "yes"}, "keep_text is 'yes': give true or false."),
        ({"truncate_dim": "all"}, "truncate_dim is 'all': give a whole number, or null."),
        ({"batch_tokens": True}, "batch_tokens is True: give a whole number from 1."),
        ({"batch_tokens": 0}, "batch_tokens is 0: give at least 1."),
    ],
)
def test_errors(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        Settings(**settings)
    assert str(error.value) == message
