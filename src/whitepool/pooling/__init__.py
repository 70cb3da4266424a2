"""Pooling heads: from the hidden states of a sentence's tokens to one vector."""

from whitepool.pooling.base import Pooling, TokenWeights
from whitepool.pooling.estimated import Idf, Sif
from whitepool.pooling.linear import LinearPooling
from whitepool.pooling.nonlinear import MaxPooling, ModelPooler
from whitepool.pooling.tokens import (
    AttentionDiagonal,
    FirstToken,
    LastToken,
    Uniform,
    VocabularyWeights,
)

__all__ = [
    "AttentionDiagonal",
    "FirstToken",
    "Idf",
    "LastToken",
    "LinearPooling",
    "MaxPooling",
    "ModelPooler",
    "Pooling",
    "Sif",
    "TokenWeights",
    "Uniform",
    "VocabularyWeights",
]
