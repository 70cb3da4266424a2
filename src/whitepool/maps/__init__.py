"""Steps after pooling: each fits an affine map on moments. PCA is in `whitepool.whitening`."""

from whitepool.maps.affine import Affine
from whitepool.maps.removal import RemoveCommon, RemoveTop
from whitepool.maps.scaling import Center, Standardize
from whitepool.maps.spectral import Shrinkage, Soft, Tempered, Zca
from whitepool.maps.zipfian import Zipfian

__all__ = [
    "Affine",
    "Center",
    "RemoveCommon",
    "RemoveTop",
    "Shrinkage",
    "Soft",
    "Standardize",
    "Tempered",
    "Zca",
    "Zipfian",
]
