"""The schema of a rule file. Used to validate; the judge reads the checked data as it is (see `rule`)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from mblint.facts.view import is_name
from mblint.ruleset.expression import ExpressionError, compile_expression
from mblint.ruleset.template import compile_template
from mblint.ruleset.versions import clauses

Severity = Literal["error", "warning", "advice"]
Outcome = Literal["fails", "hangs", "wrong", "oom", "slow", "dead", "note"]
RuleId = Annotated[str, Field(pattern=r"^[A-Z]{2,8}\d{3,4}$")]
RuleName = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)+$", max_length=60)]
Place = Annotated[str, Field(pattern=r"^[\w./-]+\.py:[\w.<>]+$")]
Text = Annotated[str, Field(min_length=1, max_length=8_000)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _expression(text: str, extra: frozenset[str] = frozenset()) -> str:
    try:
        compile_expression(text, extra)
    except ExpressionError as error:
        raise ValueError(str(error)) from None
    return text


def _template(text: str, extra: frozenset[str] = frozenset()) -> str:
    try:
        compile_template(text, extra)
    except ExpressionError as error:
        raise ValueError(str(error)) from None
    return text


def _key(key: str) -> str:
    if not is_name(key):
        raise ValueError(f"{key} is neither a key of a known section nor a fact")
    return key


def _changeable(key: str) -> str:
    """A key that a fix may change: of the configuration, or `env_vars.NAME`."""
    head, _, rest = key.partition(".")
    if head in {"env", "parent", "base"} or not rest or not is_name(key):
        raise ValueError(f"{key} is not a key that a fix can change (the environment is env_vars.NAME)")
    return key


class FixModel(_Strict):
    """A way out of the finding."""

    title: Text
    when: str | None = Field(None, description="Offer the fix only where this holds.")
    let: dict[str, str] = Field(default_factory=dict, description="Named values for `set`, `title` and `cost`.")
    set: dict[str, Any] = Field(default_factory=dict, description="New values; strings are expressions.")
    delete: list[str] = Field(default_factory=list, description="Keys whose writes are deleted.")
    safety: Literal["safe", "unsafe"] = "unsafe"
    cost: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> FixModel:
        if not self.set and not self.delete:
            raise ValueError("a fix sets or deletes at least one key")
        names: set[str] = set()
        for name, text in self.let.items():
            if not re.fullmatch(r"[a-z_]+", name) or is_name(name) or name == "new":
                raise ValueError(f"let: {name} is no free plain name")
            _expression(text, frozenset(names))
            names.add(name)
        for key, value in self.set.items():
            _changeable(key)
            if isinstance(value, str):
                _expression(value, frozenset(names))
        for key in self.delete:
            _changeable(key)
        if self.when is not None:
            _expression(self.when)
        for shown in (self.title, self.cost):
            if shown is not None:
                _template(shown, frozenset({"new", *names}))
        return self


class CaseModel(_Strict):
    """Where `when` holds as well, what is given here replaces the rule's own."""

    when: str
    severity: Severity | None = None
    outcome: Outcome | None = None
    message: Text | None = None
    enforced_by: list[Place] | None = None

    @field_validator("when")
    @classmethod
    def _check_when(cls, text: str) -> str:
        return _expression(text)

    @field_validator("message")
    @classmethod
    def _check_message(cls, text: str | None) -> str | None:
        return None if text is None else _template(text)


class ParentModel(_Strict):
    """The recipe that an example's recipe starts from."""

    base: str | None = None
    set: dict[str, Any] = Field(default_factory=dict)
    world_size: int | None = None
    gpu: str | None = None
    env: dict[str, Any] | None = None


class BeforeModel(_Strict):
    """The launch before the change under review; what is not given is as in the example."""

    base: str | None = None
    set: dict[str, Any] = Field(default_factory=dict)
    world_size: int | None = None
    gpu: str | None = None
    env: dict[str, Any] | None = None
    unknown: list[str] = Field(default_factory=list)
    written: dict[str, Any] = Field(default_factory=dict)


class ExampleModel(_Strict):
    """One launch: keys set over a base configuration, recipe source, or a launch script."""

    set: dict[str, Any] | None = Field(None, description="Values over the base configuration.")
    python: str | None = Field(None, description="A recipe, evaluated like a user's file.")
    shell: str | None = Field(None, description="A launch script, read like a user's file.")
    overrides: list[str] = Field(default_factory=list, description="With `python`: arguments that it is launched with.")
    base: str = Field("dense", description="Configuration that `set` is laid over.")
    world_size: int | None = None
    gpu: str | None = None
    env: dict[str, Any] | None = Field(None, description="The whole environment; absent means not known.")
    versions: dict[str, str] = Field(default_factory=dict)
    classes: dict[str, list[str] | str] = Field(default_factory=dict, description="Class names by section.")
    unknown: list[str] = Field(default_factory=list, description="Keys whose value is not known.")
    parent: ParentModel | None = None
    before: BeforeModel | None = Field(None, description="The launch before the change under review.")
    commit: str = Field("", description="The message of the change's commit.")
    comments: dict[str, str] = Field(default_factory=dict, description="Comments beside writes, by key.")
    name: str | None = Field(None, description="Name of the recipe.")
    written: dict[str, Any] = Field(default_factory=dict, description="Values before the launch path overwrote them.")
    severity: Severity | None = Field(None, description="Severity expected of the finding.")
    message: str | None = Field(None, description="Text expected in the message.")
    also: list[str] = Field(default_factory=list, description="Other errors that this launch has as well.")
    note: str | None = None

    @model_validator(mode="after")
    def _check(self) -> ExampleModel:
        if sum(given is not None for given in (self.set, self.python, self.shell)) != 1:
            raise ValueError("an example has one of `set`, `python` and `shell`")
        if self.overrides and self.python is None:
            raise ValueError("`overrides` stand beside `python`")
        for key in (*(self.set or {}), *self.unknown):
            _key(key)
        return self


class ExamplesModel(_Strict):
    """What the rule must find, must not find, and cannot decide."""

    fails: list[ExampleModel] = Field(min_length=1)
    passes: list[ExampleModel] = Field(min_length=1)
    undecided: list[ExampleModel] = Field(default_factory=list)


class RuleModel(_Strict):
    """A rule file."""

    id: RuleId
    name: RuleName
    title: Annotated[str, Field(min_length=8, max_length=120)]
    severity: Severity
    outcome: Outcome
    judged_by: Literal["expression", "code"] = "expression"
    versions: str | None = Field(None, description="Releases of megatron-bridge that it holds for.")
    core: str | None = Field(None, description="Releases of megatron-core that it holds for.")
    when: str | None = None
    message: Text | None = None
    cases: list[CaseModel] = Field(default_factory=list)
    blame: list[str] = Field(default_factory=list)
    fixes: list[FixModel] = Field(default_factory=list)
    enforced_by: list[Place] = Field(default_factory=list)
    replaces: list[RuleId] = Field(default_factory=list, description="Rules that have nothing to add where this one finds something.")
    why: Text
    references: list[Text] = Field(default_factory=list)
    examples: ExamplesModel

    @field_validator("versions", "core")
    @classmethod
    def _check_versions(cls, text: str | None) -> str | None:
        if text is not None:
            clauses(text)
        return text

    @field_validator("when")
    @classmethod
    def _check_when(cls, text: str | None) -> str | None:
        return None if text is None else _expression(text)

    @field_validator("message")
    @classmethod
    def _check_message(cls, text: str | None) -> str | None:
        return None if text is None else _template(text)

    @field_validator("blame")
    @classmethod
    def _check_blame(cls, keys: list[str]) -> list[str]:
        return [_key(key) for key in keys]

    @model_validator(mode="after")
    def _check(self) -> RuleModel:
        if self.judged_by == "expression":
            missing = [name for name in ("when", "message") if getattr(self, name) is None]
            if not self.blame:
                missing.append("blame")
            if missing:
                raise ValueError(f"missing: {', '.join(missing)}")
        elif self.when is not None:
            raise ValueError("a rule that is judged by code has no `when`")
        return self
