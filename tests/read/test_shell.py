"""Following shell scripts: words, environment, branches, nested scripts, against bash where it is there."""

from __future__ import annotations

import random
import re
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mblint.read import shell
from mblint.read.shell import HOLE
from mblint.read.shell_run import Interest, Run, follow
from mblint.read.shell_state import Invocation
from mblint.read.shell_text import Places, Text, made

INTEREST = Interest(lambda text: text.startswith("run") or " run" in text, lambda name: name.startswith("NCCL"))


def read(text: str, **options: object) -> tuple[Run, Places]:
    places = Places()
    return follow(text, "/x/s.sh", places, INTEREST, **options), places  # type: ignore[arg-type]


def words(invocation: Invocation) -> list[str]:
    return [field.text.chars.replace(HOLE, "?") for field in invocation.words]


def runs(text: str, **options: object) -> list[list[str]]:
    return [words(i) for i in read(text, **options)[0].invocations]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run a 'b c' \"d $X\" e\\ f", ["run", "a", "b c", "d ?", "e f"]),
        ("X='a b'\nrun $X \"$X\" ${X}z", ["run", "a", "b", "a b", "a", "bz"]),
        ("run ${X:-d} \"${Y:-e f}\" ${Z:-g h}", ["run", "d", "e f", "g", "h"]),
        ("X=a/b.tar.gz\nrun ${X##*/} ${X%.*} ${X%%.*} ${X#a} ${#X} ${X/b/c} ${X^^} ${X:2:3}",
         ["run", "b.tar.gz", "a/b.tar", "a/b", "/b.tar.gz", "10", "a/c.tar.gz", "A/B.TAR.GZ", "b.t"]),
        ("A=(x 'y z')\nA+=(w)\nrun \"${A[@]}\" ${#A[@]} ${A[1]} ${A[-1]}", ["run", "x", "y z", "w", "3", "y", "z", "w"]),
        ("declare -A M=([a]=1 [b]=2)\nM[c]=3\nrun ${M[a]} ${M[c]}", ["run", "1", "3"]),
        ("N=3\nrun $((N * 2 + 1)) $((N > 2 ? 7 : 8)) $((2**5 % 7))", ["run", "7", "7", "4"]),
        ("run {a,b}{1..2}", ["run", "a1", "a2", "b1", "b2"]),
        ("run k={x:1,y:2}", ["run", "k=x:1", "k=y:2"]),
        ("run 'k={x:1,y:2}'", ["run", "k={x:1,y:2}"]),
        ("X=1; X+=2; run $X", ["run", "12"]),
        ("run $(echo a b) \"$(echo a b)\" $(seq 1 3) `echo q`", ["run", "a", "b", "a b", "1", "2", "3", "q"]),
        ("run $'a\\tb' $\"c\"", ["run", "a\tb", "c"]),
        ("P=X; X=5; run ${!P}", ["run", "5"]),
        ("f() { local v=$1; run $v \"$@\"; }\nf 1 '2 3'", ["run", "1", "1", "2 3"]),
        ("IFS=',' read -r A B <<< '4,2'\nrun $A $B", ["run", "4", "2"]),
        ("read -r -d '' T <<'E' || true\nx $y\nE\nrun \"$T\"", ["run", "x $y"]),
        ("run a \\\n  b \\\n  c", ["run", "a", "b", "c"]),
        ("unset X\nrun \"${X-unset}\" \"${X+set}\"", ["run", "unset", ""]),
        ("printf -v X '%02d' 7\nrun $X", ["run", "07"]),
        ("set -- a b\nshift\nrun $1 $#", ["run", "b", "1"]),
        ("run {{ .Values.x }} --n={{ y }} <NAME>", ["run", "?", "--n=?", "?"]),
    ],
)  # fmt: skip
def test_words(text: str, expected: list[str]) -> None:
    assert runs(text) == [expected]


def test_unknown_text_keeps_its_reason_and_what_is_around_it() -> None:
    run, _ = read("run --out=$HOME/x $EXTRA")
    (invocation,) = run.invocations
    out, extra = invocation.words[1], invocation.words[2]
    assert out.text.chars == f"--out={HOLE}/x" and "HOME" in out.text.reason.reason and not out.open
    assert extra.open and "EXTRA" in extra.text.reason.reason


def test_words_point_where_they_were_written() -> None:
    run, places = read('A="model.x=1 \\\n   model.y=2"\nrun $A z')
    spans = [places.span(field.text.at) for field in run.invocations[0].words]
    assert [(s.line, s.column, s.end_column) for s in spans if s] == [(3, 1, 4), (1, 4, 13), (2, 4, 13), (3, 8, 9)]


def test_the_environment_of_a_command() -> None:
    run, _ = read("export A=1\nB=2\nexport C=$B\nC=3 D=4 run x\nunset A\nexport B\nrun y\nset -a\nE=5\nset +a\nrun z")
    environments = [{k: v[0].chars for k, v in i.env.items()} for i in run.invocations]
    assert environments[0] == {"A": "1", "C": "3", "D": "4"}
    assert environments[1] == {"C": "2", "B": "2"}
    assert environments[2]["E"] == "5"


def test_nested_shells_see_only_what_is_exported() -> None:
    run, places = read('export A=1\nB=2\nsrun -N2 bash -c "\n export C=\\$A\n run $B \\$B \\$A"\n')
    (invocation,) = run.invocations
    assert words(invocation) == ["run", "2", "?", "1"]
    assert invocation.env["C"][0].chars == "1"
    assert [w.text.chars for w in invocation.wrappers[0]][:3] == ["srun", "-N2", "bash"]
    span = places.span(invocation.words[1].text.at)
    assert span is not None and (span.line, span.column) == (2, 3)


@pytest.mark.parametrize(
    "text",
    [
        "cat > w.sh <<'E'\nrun a\nE\ntorchrun --no-python bash w.sh\n",
        'X=$(cat <<- E\n  run a\nE\n)\necho "$X" > w.sh\nbash w.sh\n',
        "cat <<'E' | bash -s\nrun a\nE\n",
        "bash <<E\nrun a\nE\n",
        "sbatch --wrap='run a'\n",
        "sbatch <<E\n#!/bin/bash\nrun a\nE\n",
        "C='run a'\neval \"$C\"\n",
        "C='run a'\n$C\n",
        "echo 'run a' > w.sh; chmod +x w.sh; ./w.sh\n",
        "(run a)\n",
        "{ run a; } 2>&1 | tee log\n",
        "if true; then run a; fi\n",
        "while true; do run a; break; done\n",
        "for ((i=0;i<1;i++)); do run a; done\n",
        "until run a; do sleep 1; done\n",
        "case x in y) ;; x) run a ;; esac\n",
        "exec run a\n",
        "time run a &\nwait\n",
    ],
)
def test_a_command_is_found_wherever_it_stands(text: str) -> None:
    assert runs(text)[0] == ["run", "a"]


def test_a_heredoc_is_expanded_unless_its_word_is_quoted() -> None:
    text = "A=1\ncat > a.sh <<E\nrun $A \\$A\nE\ncat > b.sh <<'E'\nrun $A\nE\nA=2 bash a.sh\nbash b.sh\n"
    assert runs(text) == [["run", "1", "2"], ["run", "?"]]


def test_known_tests_decide_and_unknown_ones_fork() -> None:
    text = 'G=${G,,}\nif [[ $G == h100 ]]; then X=1; elif [ "$G" = b200 ]; then X=2; else X=3; fi\nrun $X $G'
    run, _ = read(text)
    found = {tuple(words(i)[1:]): [str(c) for c in i.conditions] for i in run.invocations}
    assert set(found) == {("1", "h100"), ("2", "b200"), ("3", "?")}
    assert found[("2", "b200")] == ["not [[ $G == h100 ]]", '[ "$G" = b200 ]']
    assert runs("X=2\nif [ $X -gt 1 ]; then run a; else run b; fi") == [["run", "a"]]


def test_what_a_branch_has_excluded_stays_excluded() -> None:
    text = "if [ $G = a ]; then run 1; exit 0; fi\nif [ $G = a ]; then run 2; fi\nrun 3"
    assert [w[1] for w in runs(text)] == ["1", "3"]


def test_defaults_are_taken_and_named() -> None:
    run, _ = read('if [ "${MODE:-fast}" = fast ]; then run ${N:-4}; else run 9; fi')
    (invocation,) = run.invocations
    assert words(invocation) == ["run", "4"] and invocation.assumed == {"MODE": "fast", "N": "4"}
    strict, _ = read('if [ "${MODE:-fast}" = fast ]; then run ${N:-4}; else run 9; fi', assume_defaults=False)
    assert sorted(words(i)[1] for i in strict.invocations) == ["9", "?"]


def test_a_guard_for_what_the_user_has_to_fill_in_is_passed() -> None:
    text = 'IMAGE=""\nif [ -z "$IMAGE" ]; then echo set it; exit 1; fi\n[ -d "$D" ] || exit 1\nrun a'
    run, _ = read(text)
    assert [words(i) for i in run.invocations] == [["run", "a"]]
    assert run.invocations[0].conditions == ()


def test_arguments_are_absent_and_their_parser_does_nothing() -> None:
    text = 'X=1\nwhile [[ $# -gt 0 ]]; do case $1 in --x) X=$2; shift 2;; *) exit 1;; esac; done\nrun $X "$@"'
    assert runs(text) == [["run", "1"]]
    strict, _ = read(text, assume_defaults=False)
    assert all("?" in w for w in map(words, strict.invocations) for w in [w[1]] if w != "1")


def test_loops_over_known_words_run_once_for_each() -> None:
    text = "C=('1,2' '2,4')\nfor c in \"${C[@]}\"; do IFS=, read -r A B <<< $c; run $A $B; done"
    assert runs(text) == [["run", "1", "2"], ["run", "2", "4"]]


def test_what_an_unknown_loop_changes_is_unknown() -> None:
    assert runs("X=1\nwhile read -r line; do X=2; done < file\nrun $X") == [["run", "?"]]


@pytest.mark.parametrize(
    "text",
    [
        "while true; do :; done\nrun a",
        "f() { f; }\nf\nrun a",
        "for a in {1..99}; do for b in {1..99}; do for c in {1..99}; do :; done; done; done\nrun a",
        "\n".join(f"if [ $A{i} = x ]; then B{i}=1; fi" for i in range(60)) + "\nrun $B1",
        "X=a\n" + "X=$X$X\n" * 60 + "run $X",
        "$(" * 80 + "run" + ")" * 80,
        "(" * 400 + "run a" + ")" * 400,
        "run " + '"${x:-' * 100 + "}" * 100,
        "run $((" + "(" * 300 + "1" + ")" * 300 + "))",
        "eval 'eval \"eval run\"'",
        "if then fi )) ;; esac <<<",
        "\x00run a\x00",
        "run '" + "x" * 200_000,
        "source <(run a)",
    ],
)  # fmt: skip
def test_hostile_scripts_end_soon(text: str) -> None:
    import time

    started = time.perf_counter()
    read(text)
    read(text, assume_defaults=False)
    assert time.perf_counter() - started < 20


def test_files_are_sourced_through_the_caller_only() -> None:
    asked: list[str] = []

    def read_file(name: str) -> tuple[str, str] | None:
        asked.append(name)
        return ("/x/lib.sh", "X=7\n") if name == "lib.sh" else None

    run, places = read('source "$(dirname "$0")/lib.sh"\n. other.sh\nrun $X', read_file=read_file)
    assert words(run.invocations[0]) == ["run", "7"] and asked == ["lib.sh", "other.sh"]
    span = places.span(run.invocations[0].words[1].text.at)
    assert span is not None and (span.path, span.line) == ("/x/lib.sh", 1)


def test_structure_survives_what_the_grammar_cannot_read() -> None:
    script = shell.parse("run a\nfoo() ((\nrun b\n")
    assert script.broken and script.statements


def test_text_parts_keep_reasons_in_step() -> None:
    from mblint.evaluate.unknown import Unknown

    text = made("a", 0) + Text(HOLE, (1,), (Unknown("one"),)) + made("b", 2) + Text(HOLE, (3,), (Unknown("two"),))
    assert [w.reason for w in text.part(2).why] == ["two"]
    assert [w.reason for w in text.part(0, 3).why] == ["one"]
    assert [part.chars for part in (made("x y", 0) + text).split()] == ["x", f"ya{HOLE}b{HOLE}"]


# ------------------------------------------------------------------ against bash

_WORDS = [
    "$A", "${B}", "${C:-d e}", "${C:=w}", "$((A_N*2))", "${ARR[@]}", '"${ARR[@]}"', "${ARR[0]}", "${A%.*}", "${A#*/}",
    "${B//o/0}", "${B,,}", "$(echo a b)", "$(seq 1 3)", "${!P}", "{p,q}", "x{1..3}y", "a{b,c}$A", "$#", "${1:-none}",
    '"$@"', "${A: -2}", "${B:0:3}", "${M[k]}", '"${M[@]}"', '$(printf "%s-%s" u v)', "$(cat <<< hey)", "\\$A", "a\\ b",
    "$'t\\tz'", "${A:-${B:-n}}", "${C-u}", "${C+set}",
]  # fmt: skip
_QUOTED = ["x", " ", "$A", "${B}", "${C:-d e}", '\\"', "\\$", "\\\\", "${ARR[@]}", "${ARR[*]}", "$((1+2))", "y", "${#A}",
           "${A%b*}", "${A##*/}", "${B/x/z}", "${A^^}", "${ARR[1]}", "${#ARR[@]}", "${C:+s}", "${A:1:2}", "$(echo hi)",
           "${M[k]}"]  # fmt: skip
_TESTS = ['[ "$A" = x ]', "[[ $A == a* ]]", '[ -z "$C" ]', "[[ -n $B && $A != 1 ]]", "[ $A_N -gt 1 ]", "(( A_N > 2 ))",
          "[[ $B =~ ^f ]]", '! [ "$B" = foo-bar ]', '[ "$A" = x -o "$B" = y ]', "[[ ( $A == x || -n $C ) ]]",
          "[ ${#ARR[@]} -eq 2 ]", 'test -n "$A"', "true", "false", '[[ "$B" == *o* ]]', "[[ -v C ]]", '[ "$A" != "$B" ]']  # fmt: skip


class _Scripts:
    """Random scripts in the part of bash that launch scripts use."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def word(self, depth: int = 0) -> str:
        draw = self.chance.random()
        if draw < 0.35:
            return self.chance.choice(["x", "1", "a.b=c", "--f", "k=v", "aXb", "10", "a/b/c.txt", "Hello", "+x"])
        if draw < 0.42:
            return "'" + self.chance.choice(["q r", "$A", "x\\y", ""]) + "'"
        if draw < 0.62:
            return '"' + "".join(self.chance.choice(_QUOTED) for _ in range(self.chance.randint(0, 4))) + '"'
        if draw < 0.9 or depth > 1:
            return self.chance.choice(_WORDS)
        return self.word(depth + 1) + self.word(depth + 1)

    def words(self, low: int, high: int) -> str:
        return " ".join(self.word() for _ in range(self.chance.randint(low, high)))

    def statement(self, depth: int = 0) -> str:
        kinds = ["show", "assign", "array", "number", "map", "unset", "read", "call", "set", "shift", "eval"]
        if depth < 2:
            kinds += ["if", "if", "for", "case", "and"]
        kind = self.chance.choice([*kinds, "show", "show", "assign"])
        name = self.chance.choice("ABC")
        match kind:
            case "show":
                return "show " + self.words(1, 4)
            case "assign":
                return f"{name}{self.chance.choice(['=', '=', '+='])}{self.word()}"
            case "array":
                return f"ARR{self.chance.choice(['=', '+='])}({self.words(0, 3)})"
            case "number":
                return "A_N=" + self.chance.choice(["1", "3", "$((A_N+1))", "$(( A_N * 2 - 1 ))", "$((2**3 % 5))"])
            case "map":
                return f"M[k]={self.word()}"
            case "unset":
                return f"unset {self.chance.choice('BC')}"
            case "read":
                return f"IFS=, read -r A B <<< '{self.chance.choice(['1,2', 'a,b,c', 'x'])}'"
            case "call":
                return f"local_f {self.word()} {self.word()}"
            case "set":
                return "set -- " + self.words(0, 3)
            case "shift":
                return "shift"
            case "eval":
                return 'eval "show ' + self.chance.choice(["\\$B", "x y", "'a b'"]) + '"'
            case "if":
                text = f"if {self.chance.choice(_TESTS)}; then\n{self.statement(depth + 1)}"
                if self.chance.random() < 0.4:
                    text += f"\nelif {self.chance.choice(_TESTS)}; then\n{self.statement(depth + 1)}"
                return text + f"\nelse\n{self.statement(depth + 1)}\nfi"
            case "for":
                return f"for i in {self.words(1, 3)}; do\n show $i\n{self.statement(depth + 1)}\ndone"
            case "case":
                arms = "\n".join(f" {p}) {self.statement(depth + 1)} ;;" for p in ("x|1", "a*", "*"))
                return f'case "$A" in\n{arms}\nesac'
        return f"{self.chance.choice(_TESTS)} {self.chance.choice(['&&', '||'])} {self.statement(2)}"

    def script(self) -> str:
        head = 'local_f() {\n local A=$1\n show in "$A" "$2"\n B=changed\n}\ndeclare -A M\nA=x\nB=foo-bar\nA_N=2\n'
        head += 'P=B\nARR=(one "two three")\n'
        return head + "\n".join(self.statement() for _ in range(self.chance.randint(2, 7))) + "\n"


_SHOW = "show() { for a in \"$@\"; do printf '%s\\001' \"$a\"; done; printf '\\002'; }\nset -f\n"


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**40))
def test_random_scripts_run_as_bash_runs_them(seed: int) -> None:
    text = _Scripts(seed).script()
    real = subprocess.run(["bash", "-c", _SHOW + text], capture_output=True, text=True, check=False, cwd="/")
    expected = [line.split("\x01")[:-1] for line in real.stdout.split("\x02")[:-1]]
    places = Places()
    run = follow(text, "s.sh", places, Interest(lambda line: line.startswith("show"), lambda name: False))
    got = [[f.text.chars for f in i.words[1:]] for i in run.invocations]
    unknown = any(f.text.why for i in run.invocations for f in i.words) or any(i.conditions for i in run.invocations)
    if unknown or re.search("syntax error|unexpected|extra operand", real.stderr):
        return
    assert got == expected, text
