"""Pooling heads: from the hidden states of a sentence's tokens to one vector."""

from whitepool.pooling.base import Pooling, TokenWeights
from whitepool.pooling.estimated import Idf, Sif
from whitepool.pooling.impact import Impact
from whitepool.pooling.linear import LinearPooling
from whitepool.pooling.nonlinear import MaxPooling, ModelPooler
from whitepool.pooling.prompt import DebiasedPrompt
from whitepool.pooling.sbert_wk import SbertWk
from whitepool.pooling.slots import MaskToken, SecondCopy
from whitepool.pooling.tokens import (
    AttentionDiagonal,
    ByPosition,
    FirstToken,
    LastToken,
    Uniform,
    VocabularyWeights,
    Words,
)
from whitepool.pooling.vocabulary import StaticRemoveBiases, Usif

__all__ = [
    "AttentionDiagonal",
    "ByPosition",
    "DebiasedPrompt",
    "FirstToken",
    "Idf",
    "Impact",
    "LastToken",
    "LinearPooling",
    "MaskToken",
    "MaxPooling",
    "ModelPooler",
    "Pooling",
    "SbertWk",
    "SecondCopy",
    "Sif",
    "StaticRemoveBiases",
    "TokenWeights",
    "Uniform",
    "Usif",
    "VocabularyWeights",
    "Words",
]
