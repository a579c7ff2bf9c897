"""Empty stand-ins for packages that need a GPU to install or to import.

The config path of upstream asks of them little more than whether they are there and which version they
are. So each is a module that gives out, on demand, an empty class for a CapitalisedName and a callable
submodule for any other name. Classes are plain Python classes, so that upstream can mix them
with its own bases; the callables also work as decorators.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

# Import name -> version that it reports. Only Transformer Engine's is asked for by checks of the config
# path; the others are recent releases, so that every "is it new enough" guard is true.
PACKAGES: dict[str, str] = {
    "transformer_engine": "2.14.0",
    "transformer_engine_torch": "2.14.0",
    "apex": "0.1",
    "amp_C": "0.1",
    "fused_weight_gradient_mlp_cuda": "0.1",
    "fused_layer_norm_cuda": "0.1",
    "scaled_softmax_cuda": "0.1",
    "scaled_masked_softmax_cuda": "0.1",
    "scaled_upper_triang_masked_softmax_cuda": "0.1",
    "grouped_gemm": "1.1.4",
    "flash_attn": "2.8.3",
    "flash_attn_3": "3.0.0",
    "flash_attn_interface": "3.0.0",
    "flashattn_hopper": "3.0.0",
    "flash_mla": "1.0.0",
    "mamba_ssm": "2.3.0",
    "causal_conv1d": "1.6.0",
    "fla": "0.4.1",
    "nvidia_resiliency_ext": "0.6.0",
    "modelopt": "0.44.0",
    "megatron.energon": "7.3.0",
    "deep_ep": "1.3.0",
    "deep_gemm": "2.1.0",
    "emerging_optimizers": "0.2.0",
    "flashinfer": "0.6.8",
    "flashinfer_cubin": "0.6.8",
    "flashinfer_jit_cache": "0.6.8",
    "fast_hadamard_transform": "1.1.0",
    "tilelang": "0.1.8",
    "cudnn": "1.26.0",
    "nvshmem": "0.2.0",
    "torch_memory_saver": "0.0.9",
    "nvdlfw_inspect": "0.2.1",
    "multistorageclient": "0.50.0",
    "nemo_run": "0.8.0",
    "wandb": "0.29.0",
    "mlflow": "3.16.0",
    "nvtx": "0.2.14",
}

# Distribution names where they differ from the import name in more than "_" and "-".
DISTRIBUTIONS: dict[str, str] = {
    "modelopt": "nvidia-modelopt",
    "megatron.energon": "megatron-energon",
    "fla": "flash-linear-attention",
    "cudnn": "nvidia-cudnn-frontend",
    "flashinfer": "flashinfer-python",
}


class OpenClass(type(Protocol)):  # type: ignore[misc]  # so that it mixes with protocols and abstract classes
    """Lets a stand-in class have every public class attribute that it is asked for."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return StandInModule(f"{cls.__module__}.{cls.__qualname__}.{name}")


class Empty(metaclass=OpenClass):
    """Base of every stand-in class: takes any arguments, can be subscripted like a generic class."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __class_getitem__(cls, item: Any) -> type:
        return cls


def fused_adam(
    params: Any,
    lr: float = 1e-3,
    bias_correction: bool = True,
    betas: Any = (0.9, 0.999),
    eps: float = 1e-8,
    adam_w_mode: bool = True,
    weight_decay: float = 0.0,
    amsgrad: bool = False,
    *,
    capturable: bool = False,
    master_weights: bool = False,
    master_weight_dtype: Any = None,
    exp_avg_dtype: Any = None,
    exp_avg_sq_dtype: Any = None,
    use_decoupled_grad: bool = False,
    store_param_remainders: bool = False,
    set_grad_none: bool | None = None,
) -> None:
    """Transformer Engine's FusedAdam, of which upstream reads the argument names."""


# Names whose signature is read by upstream.
SPECIAL: dict[str, Any] = {"transformer_engine.pytorch.optimizers.FusedAdam": fused_adam}


def stand_in(qualified: str) -> Any:
    """An empty class for a CapitalisedName, else something that is a function and a submodule at once."""
    if qualified in SPECIAL:
        return SPECIAL[qualified]
    module, _, name = qualified.rpartition(".")
    if name.lstrip("_")[:1].isupper():
        return OpenClass(name, (Empty,), {"__module__": module})

    return StandInModule(qualified)


class StandInModule(types.ModuleType):
    """A module that has every public name that it is asked for, and can be called like a function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]  # used as a decorator
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = stand_in(f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stand-in for every name in `packages` and for all that is below it."""

    def __init__(self, packages: Mapping[str, str]) -> None:
        self.packages = dict(packages)

    def version_of(self, fullname: str) -> str | None:
        parts = fullname.split(".")
        for end in range(len(parts), 0, -1):
            version = self.packages.get(".".join(parts[:end]))
            if version is not None:
                return version
        return None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if self.version_of(fullname) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = StandInModule(spec.name)
        module.__version__ = self.version_of(spec.name)  # type: ignore[attr-defined]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def distribution_of(package: str) -> str:
    """The distribution that an import name comes from."""
    return DISTRIBUTIONS.get(package, package).replace("_", "-").lower()


def distribution_version(packages: Mapping[str, str], real: Callable[[str], str]) -> Callable[[str], str]:
    """`importlib.metadata.version` that also knows the stand-ins."""
    known = {distribution_of(name): version for name, version in packages.items()}

    def version(distribution_name: str) -> str:
        key = distribution_name.replace("_", "-").lower()
        return known[key] if key in known else real(distribution_name)

    return version


def distributions(packages: Mapping[str, str], real: Callable[[], Mapping[str, list[str]]]) -> Callable[[], Mapping[str, list[str]]]:
    """`importlib.metadata.packages_distributions` that also knows the stand-ins."""
    return lambda: {**real(), **{name: [distribution_of(name)] for name in packages}}


def install(overrides: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """Put the stand-ins in place; `overrides` changes a version, or leaves a package out (None).

    Returns the table that is in force.
    """
    packages = dict(PACKAGES)
    for name, version in (overrides or {}).items():
        if version is None:
            packages.pop(name, None)
        else:
            packages[name] = version
    sys.meta_path.insert(0, StandInFinder(packages))
    metadata = importlib.metadata
    metadata.version = distribution_version(packages, metadata.version)
    metadata.packages_distributions = distributions(packages, metadata.packages_distributions)
    return packages
