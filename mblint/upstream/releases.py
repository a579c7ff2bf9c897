"""The upstream releases that mblint knows: which pair belongs together, and the hash of each wheel.

megatron-bridge does not pin megatron-core (0.3 gives a range, later ones nothing), so the pairs are those
that were released together: the core whose wheels were built the same day, or the newest one built before.
0.5.1 is paired with 0.18.0, the core of its series; 0.18.2, built the same day, is a `--core 0.18.2` away.

Hashes are sha256 of the wheel as released: the universal one of megatron-bridge, the CPython 3.12 x86-64 one
of megatron-core (its Python files are the same in every wheel of a release).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # `--version` reads this module, and typing takes as long to import as all else of it
    from typing import Final

DEFAULT_BRIDGE: Final = "0.6.2"
"""What `mblint upstream fetch` brings when no version is named, and what the shipped snapshot describes."""

CORE_OF_BRIDGE: Final[dict[str, str]] = {
    "0.3.0": "0.16.0",
    "0.3.1": "0.16.1",
    "0.4.0": "0.17.0",
    "0.4.1": "0.17.0",
    "0.4.2": "0.17.1",
    "0.5.0": "0.18.0",
    "0.5.1": "0.18.0",
    "0.6.0": "0.19.0",
    "0.6.1": "0.19.0",  # withdrawn from the index by its authors; still served to who names it
    "0.6.2": "0.19.2",
}

SHA256: Final[dict[str, dict[str, str]]] = {
    "megatron-bridge": {
        "0.3.0": "cbb49b1efdc85bcb5cb1365802af76089a3825a5375d23b65f0b3774425e7c31",
        "0.3.1": "4d9a9ad679bd927a84f923e5239512d72af7fa47331b749a8f275592c2920616",
        "0.4.0": "c1b198506d2901c75229a54a83698ccc6d139efe950c9086530fa450ebb2d28f",
        "0.4.1": "ea413717f4887b5bfcb9ff0de4cf596c276cf7bbf28b7f16575f83155ad3dca4",
        "0.4.2": "6f132e19fe8e4a88d7acd65e63182a3f6ff4fbd664d85a436cba44da5e621ce3",
        "0.5.0": "f8b4fcce2dbe5162f1056a72f429eb6f1b9ea94b9d6380db6b8b4a3c9168a9c9",
        "0.5.1": "961ad0a3e08678bb7172b9be3356131567e19d9476f3c983fdaa8483be8f5c3b",
        "0.6.0": "ebcdffb6a1c03221b667c21374dac3ab18b1ad9237c875e20bd640f10a366f6c",
        "0.6.1": "a3ef69c679a786e353f14ecef34329a819598edfaeb51aec02a519ace4c33c89",
        "0.6.2": "bcb7274ab9327167c345aa24b96b95790ce5090df1945d883bdc41065d5649e2",
    },
    "megatron-core": {
        "0.16.0": "478f77ecc36fb9b1d75f92c995ae9babd940ed95dd46a298db9b399b737811cd",
        "0.16.1": "3fb26cb407aa3c4b609c08664022c08146f1648b3d6f2ef2bbe9d3b1294ace61",
        "0.17.0": "0cbacf043603f9dc2735310e1b1dcd5c076c02caab13849c2d2fe6a99cbea4f6",
        "0.17.1": "6dd0826489ee70a791e38612b25e914c4a18b0b074f2282353f235ee96273cf2",
        "0.18.0": "beb6f7b1462a82723cef31773dae60f54a2f7bc809e5e050cf9f59c344b5a373",
        "0.18.2": "c2717b84079bf0bad1151525533a251870d1a86201f8c0702e0b5a6d6b5594f1",
        "0.19.0": "ed4f503a4a6944599857c4f702f3a33039656fe119309119fc5bb8cba8a38240",
        "0.19.2": "8e3e486f13f559450415b9b9dc0ff3331a0bb83dd154553f7f350a75ff9c42b5",
    },
}


def known_core(bridge: str) -> str | None:
    """The megatron-core release that was released with this megatron-bridge, when mblint knows it."""
    return CORE_OF_BRIDGE.get(bridge)


def known_hash(distribution: str, version: str) -> str | None:
    """The pinned sha256 of a wheel (`megatron-bridge` or `megatron-core`), when mblint knows the release."""
    return SHA256[distribution].get(version)
