"""The declared world of a launch: environment, number and type of GPUs, versions and packages.

Nothing of the machine that runs mblint enters here by itself.
"""

from __future__ import annotations

from typing import Any

from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, External, VersionValue

PACKAGES = {
    "transformer_engine": "te",
    "transformer-engine": "te",
    "torch": "torch",
    "flash-attn": "flash_attn",
    "flash_attn": "flash_attn",
    "transformers": "transformers",
}
"""Distribution names and the fact that holds their version."""


class World:
    """Facts that evaluated code may ask for."""

    def __init__(
        self,
        world_size: int | None = None,
        gpu: str | None = None,
        env: dict[str, str] | None = None,
        versions: dict[str, str] | None = None,
        missing: frozenset[str] = frozenset(),
    ) -> None:
        self.world_size = world_size
        self.gpu = gpu
        self.env: dict[str, Any] = dict(env or {})
        self.env_known = env is not None
        self.versions = versions or {}
        self.missing = missing
        self.argv: list[Any] | None = None
        """Words that the evaluated program is started with (an Unknown where one is not known); None: nobody knows them."""
        self.flags: dict[str, Any] = {}
        """State of libraries that evaluated code asks for, such as whether torch.distributed is initialised."""
        self.watched: dict[str, Any] | None = None
        """While set: the environment variables that were asked for, with what `env` held then."""
        self.special_classes: dict[str, Any] = {}
        self.special_calls: dict[str, Any] = {}

    # --- environment -----------------------------------------------------------------------------------------------

    def read_environment(
        self, machine: Any, name: Any, default: Any, site: Any, frame: Any, explicit: bool = True, quiet: bool = False
    ) -> Any:
        """os.environ[name] (default MISSING) or os.environ.get(name, default).

        While a recipe is built, a default that the author wrote is taken, and the read is noted, since the variable may
        change it. Later an unknown environment leaves the value unknown.
        """
        if not isinstance(name, str):
            return Unknown("an environment variable whose name is not known")
        self._note_read(machine, name)
        if name in self.env:
            held = self.env[name]
            return (
                (default if default is not MISSING else MISSING) if held is MISSING and quiet else held if held is not MISSING else default
            )
        special = self._process_variable(name)
        if special is not None:
            return special
        machine.env_reads[name] = site
        if self.env_known:
            if default is MISSING and not quiet:
                return machine.missing_key(name, site, frame)
            return default
        if machine.phase == 0 and explicit and default is not MISSING:
            return default
        return Unknown(_not_known(name), site.span() if site else None)

    def _note_read(self, machine: Any, name: str) -> None:
        machine.env_read_count += 1
        if self.watched is not None:
            self.watched.setdefault(name, self.env.get(name, MISSING))

    def _process_variable(self, name: str) -> Any:
        """What torchrun sets for the first process."""
        if name == "WORLD_SIZE":
            return str(self.world_size) if self.world_size is not None else Unknown("the number of GPUs is not known")
        if name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "SLURM_LOCALID"):
            return "0" if not name.startswith("SLURM") else None
        return None

    def set_environment(self, machine: Any, name: Any, value: Any, site: Any, frame: Any) -> None:
        if not isinstance(name, str):
            return
        machine.oldest_touched = 0
        if type(value) is Unknown and value.reason == _not_known(name) and name in self.env:
            # What was there before is put back.
            machine.trail.append((self.env, name, self.env.pop(name)))
        else:
            machine.store(self.env, name, value)

    def default_environment(self, machine: Any, name: Any, value: Any, site: Any, frame: Any) -> Any:
        """os.environ.setdefault: a value that the launcher set wins; when that is not known, the given one is assumed."""
        if not isinstance(name, str):
            return Unknown("an environment variable whose name is not known")
        self._note_read(machine, name)
        if name in self.env and self.env[name] is not MISSING:
            return self.env[name]
        machine.oldest_touched = 0
        machine.store(self.env, name, value)
        return value

    # --- packages --------------------------------------------------------------------------------------------------

    def missing_package(self, name: str) -> bool:
        top = name.partition(".")[0]
        return top in self.missing or name in self.missing

    def package_version(self, name: Any) -> Any:
        fact = PACKAGES.get(name) if isinstance(name, str) else None
        held = self.versions.get(fact) if fact else None
        return held if held is not None else Unknown(f"the version of {name} is not declared")

    def library_value(self, dotted: str) -> Any:
        """Constants of libraries that depend on the declared world."""
        if dotted.endswith(".__version__") and dotted.count(".") == 1:
            return self.package_version(dotted.partition(".")[0])
        if dotted == "torch.version.cuda":
            return self.versions.get("cuda") or Unknown("the CUDA version is not declared")
        return None

    def has_attribute(self, dotted: str) -> bool | None:
        """hasattr(library, name), where that is known: None else."""
        if dotted in ATTRIBUTES:
            return ATTRIBUTES[dotted]
        if dotted.startswith(("torch.cuda.", "torch.distributed.")) and dotted.count(".") == 2:
            return True
        return None

    def library_parameters(self, dotted: str) -> list[str] | None:
        """Parameter names of a library's function that upstream inspects."""
        return PARAMETERS.get(dotted)

    # --- special classes -------------------------------------------------------------------------------------------

    def special_class(self, full_name: str) -> Any:
        return self.special_classes.get(full_name)

    def special_call(self, name: str) -> Any:
        return self.special_calls.get(name)

    def path_exists(self, path: Any) -> Any:
        """Paths that a launch names are taken to exist."""
        if isinstance(path, str):
            return True
        return Unknown("whether a path exists")


def _not_known(name: str) -> str:
    return f"the environment variable {name} is not known"


ATTRIBUTES: dict[str, bool] = {
    "transformer_engine.__version__": True,
    "torch.__version__": True,
}

PARAMETERS: dict[str, list[str]] = {
    "transformer_engine.pytorch.optimizers.FusedAdam": [
        "params", "lr", "bias_correction", "betas", "eps", "adam_w_mode", "weight_decay", "amsgrad", "capturable",
        "master_weights", "master_weight_dtype", "exp_avg_dtype", "exp_avg_sq_dtype", "use_decoupled_grad",
        "store_param_remainders", "set_grad_none",
    ],
}  # fmt: skip

__all__ = ["MISSING", "External", "VersionValue", "World"]
