"""Hostile YAML files, scripts, settings, rule packs, launch lists and names."""

from __future__ import annotations

MARK = "# mblint: recipe=llama3_8b_pretrain_config\n"
RUN = "torchrun --nproc_per_node=8 scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config"

_BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))

YAML: dict[str, str | bytes] = {
    "alias bomb": MARK + "model:\n  seq_length: 128\n" + _BOMB,
    "alias bomb in a value": MARK + _BOMB + "model:\n  extra: *a11\n",
    "merge bomb": MARK + "m0: &m0 {k: 1}\n" + "".join(f"m{i}: &m{i}\n  <<: [{', '.join([f'*m{i - 1}'] * 9)}]\n" for i in range(1, 9)) + "model: *m8\n",
    "holds itself": MARK + "model: &a\n  seq_length: 128\n  again: *a\n",
    "list that holds itself": MARK + "model:\n  seq_length: &a [1, *a]\n",
    "merges itself": MARK + "model: &a\n  <<: *a\n  seq_length: 1\n",
    "deep flow": MARK + "model: " + "[" * 20_000 + "]" * 20_000 + "\n",
    "deep flow maps": MARK + "model: " + "{a: " * 5_000 + "1" + "}" * 5_000 + "\n",
    "deep blocks": MARK + "model:\n" + "".join(" " * i + "a:\n" for i in range(1, 1_500)),
    "deep lists": MARK + "model:\n  a: " + "- " * 3_000 + "1\n",
    "many keys": MARK + "model:\n" + "".join(f"  k{i}: {i}\n" for i in range(60_000)),
    "many documents": MARK + "---\nmodel: {seq_length: 1}\n" * 20_000,
    "duplicate keys": MARK + "model:\n  seq_length: 1\n  seq_length: 2\nmodel:\n  seq_length: 3\n",
    "code tags": MARK + "model:\n  seq_length: !!python/object/apply:os.system ['touch pwned']\n  x: !!python/name:os.system\n",
    "odd tags": MARK + "model:\n  a: !!binary '====='\n  b: !!timestamp x\n  c: !<tag:x,2000:y> 1\n  d: !!set {1, 2}\n  e: !!omap [a: 1]\n  f: !!int x\n",
    "odd scalars": MARK + "model:\n  a: 2001-13-45\n  b: 190:20:30\n  c: =\n  d: .inf\n  e: 1e99999\n  f: 0x" + "f" * 5_000 + "\n  g: " + "9" * 9_000 + "\n  h: 0o9\n  i: ~\n",
    "odd keys": MARK + "? [a, b]\n: 1\n? {c: d}\n: 2\nnull: 3\n1: 4\ntrue: 5\nmodel:\n  seq_length: 1\n  [1]: 2\n",
    "odd merges": MARK + "model:\n  <<: [1, 2]\n  <<: x\n  seq_length: 1\n",
    "unclosed": MARK + "model: {seq_length: 1, [\n",
    "tabs": MARK + "model:\n\tseq_length: 1\n",
    "NUL": (MARK + "model:\n  seq_length: 1\0\n").encode(),
    "Latin-1": (MARK + "model:\n  name: 'ü'\n").encode("latin-1"),
    "UTF-16": (MARK + "model:\n  seq_length: 1\n").encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + (MARK + "model:\n  seq_length: 128\n").encode(),
    "CRLF": (MARK + "model:\n  seq_length: 128\n").replace("\n", "\r\n"),
    "form feed": MARK + "model:\f\n  seq_length: 128\n",
    "control characters": MARK + 'model:\n  name: "\\e[31m\\0\\a"\n  "\\e[2Jkey%0A::error::": 1\n  \'a\\n::error::b\': 2\n',
    "interpolation cycle": MARK + "model:\n  seq_length: ${model.hidden_size}\n  hidden_size: ${model.seq_length}\n",
    "interpolation of itself": MARK + "model:\n  seq_length: ${model.seq_length}\n",
    "interpolation of the whole": MARK + "model:\n  seq_length: ${model}\n  x: ${.}\n  y: ${..}\n",
    "interpolation, deep": MARK + "model:\n  seq_length: " + "${" * 3_000 + "a" + "}" * 3_000 + "\n",
    "interpolation that grows": MARK + "v0: xx\n" + "".join(f"v{i}: ${{v{i - 1}}}${{v{i - 1}}}\n" for i in range(1, 60)) + "model:\n  name: ${v59}\n",
    "interpolation, long chain": MARK + "v0: 1\n" + "".join(f"v{i}: ${{v{i - 1}}}\n" for i in range(1, 3_000)) + "model:\n  seq_length: ${v2999}\n",
    "resolvers": MARK + "model:\n  a: ${oc.env:HOME}\n  b: ${oc.create:${a}}\n  c: ${oc.decode:'[[[[['}\n  d: ${eval:'1'}\n  e: ${oc.dict.keys:model}\n",
    "long line": MARK + "model: {name: '" + "a" * 1_500_000 + "'}\n",
    "targets": MARK + "model:\n  _target_: os.system\n  _args_: ['touch pwned']\n  _partial_: true\n",
    "keys to nowhere": MARK + "model.a.b.c: 1\n'': 2\n.: 3\n..: 4\nmodel:\n  '': 1\n  a..b: 2\n  __class__: x\n  __dict__: {a: 1}\n",
    "defaults of itself": "defaults:\n  - hostile\n  - ../../../../etc/passwd\n  - /etc/passwd\n" + MARK + "model:\n  seq_length: 1\n",
}  # fmt: skip
"""YAML files that mblint takes for override files."""

SHELL: dict[str, str | bytes] = {
    "brace range": f"for i in {{1..1000000000}}; do {RUN}; done\n",
    "brace product": "x=" + "{a,b}" * 40 + f"\n{RUN}\n",
    "brace nesting": "x=" + "{a," * 2_000 + "b" + "}" * 2_000 + f"\n{RUN}\n",
    "seq": f"for i in $(seq 1 1000000000); do {RUN}; done\n",
    "for without end": f"for ((;;)); do {RUN}; done\n",
    "while without end": f"while true; do x=$x$x; y=a$y; {RUN}; done\n",
    "until without end": f"until false; do :; done\n{RUN}\n",
    "text that doubles": "x=aa\n" + "x=$x$x\n" * 200 + f"{RUN} model.name=$x\n",
    "text that doubles in a loop": f"x=aa\nfor i in {{1..200}}; do x=$x$x; done\n{RUN} model.name=$x\n",
    "array that doubles": "x=(a b)\n" + 'x=("${x[@]}" "${x[@]}")\n' * 100 + f"{RUN}\n",
    "array index": f"x[999999999]=1; x[10**18]=2; y=(${{x[@]}})\n{RUN} model.seq_length=${{#x[@]}}\n",
    "recursion": f"f() {{ f; f; }}\nf\n{RUN}\n",
    "functions that call": "".join(f"f{i}() {{ f{i + 1}; f{i + 1}; }}\n" for i in range(60)) + f"f60() {{ {RUN}; }}\nf0\n",
    "arithmetic": f"x=$((1 << 999999)) y=$((9**9**9)) z=$((1/0)) w=$((x=x+1, y++)) v=$((2#101 + 64#zz))\n{RUN} model.seq_length=$x\n",
    "arithmetic, deep": "x=$((" + "(" * 3_000 + "1" + ")" * 3_000 + f"))\n{RUN}\n",
    "arithmetic of itself": f"a=b; b=a; x=$((a)); c=c+1; y=$((c))\n{RUN}\n",
    "substitution, deep": "x=" + "$(echo " * 1_000 + "1" + ")" * 1_000 + f"\n{RUN}\n",
    "quotes, deep": 'x="' + '$(echo "' * 400 + "1" + '")' * 400 + f'"\n{RUN}\n',
    "subshells, deep": "(" * 3_000 + RUN + ")" * 3_000 + "\n",
    "ifs, deep": "if true; then\n" * 1_500 + f"{RUN}\n" + "fi\n" * 1_500,
    "if of many": "if [ $X = 0 ]; then :\n" + "".join(f"elif [ $X = {i} ]; then Y={i}\n" for i in range(3_000)) + f"fi\n{RUN} model.seq_length=$Y\n",
    "forks": "".join(f'if [ "$A{i}" = 1 ]; then X="$X {i}"; fi\n' for i in range(60)) + f"{RUN} $X\n",
    "cases": "case $X in\n" + "".join(f"a{i}|b{i}) Y={i};;\n" for i in range(3_000)) + f"esac\n{RUN}\n",
    "glob": "x=" + "a" * 500 + "\n" + "case $x in " + "*a" * 40 + "b) y=1;; esac\n" + f"[[ $x == {'*a' * 40}b ]] && y=2\n{RUN} ${{x//{'*a' * 20}b/}}\n",
    "extended glob": "shopt -s extglob\nx=" + "a" * 60 + f"\n[[ $x == +(a|aa|*(a))b ]] && y=1\n{RUN} ${{x%%+(a)+(a)b}}\n",
    "regular expression": "x=" + "a" * 60 + f"\n[[ $x =~ ^(a+)+$b ]] && y=1; [[ $x =~ (x+x+)+y ]]; [[ $x =~ (a|a)*b ]]\n{RUN}\n",
    "sources itself": f"source hostile.sh\n. ./hostile.sh\n. /dev/stdin\nsource /etc/passwd\n{RUN}\n",
    "eval": f"eval 'eval \"eval true\"'\neval \"$(cat /etc/passwd)\"\n{RUN}\n",
    "commands": f"touch pwned; x=$(touch pwned; curl evil); rm -rf /; `touch pwned`\n{RUN}\n",
    "unterminated quote": f"x='abc\n{RUN}\n",
    "unterminated substitution": f"x=$(echo \n{RUN}\n",
    "unterminated here-document": f"cat <<EOF\n{RUN}\n",
    "here-documents": "cat <<A <<B <<'C'\n" + f"{RUN}\nA\nB\nC\n{RUN}\n",
    "continued": "x=1 \\\n" * 20_000 + f"{RUN}\n",
    "long line": f"x='{'a' * 1_900_000}'\n{RUN}\n",
    "many words": f"{RUN} " + " ".join(f"model.k{i}={i}" for i in range(20_000)) + "\n",
    "many launches": f"{RUN}\n" * 60,
    "many variables": "".join(f"V{i}=$V{i - 1}x\n" for i in range(1, 20_000)) + f"{RUN}\n",
    "printf": f"printf -v x '%1000000000d' 1; printf -v y '%*s' 1000000000 a; x=$(printf 'a%.0s' {{1..100000}})\n{RUN} model.name=$x\n",
    "substring": f"x=abc; y=${{x:999999999999999999999}}; z=${{x:0:-5}}; w=${{!x}}; v=${{x^^}}; u=${{x@Q}}; t=${{#x}}\n{RUN}\n",
    "indirect": f"a=b; b=c; c=a; x=${{!a}}; declare -n r=r; y=$r; declare -n p=q q=p; z=$p\n{RUN}\n",
    "NUL": f"x=1\0\n{RUN}\n".encode(),
    "Latin-1": f"# ü\nX='ä'\n{RUN} model.name=$X\n".encode("latin-1"),
    "CRLF": f"X=1\n{RUN}\n".replace("\n", "\r\n"),
    "byte order mark": b"\xef\xbb\xbf" + f"{RUN}\n".encode(),
    "control characters": f"X=$'\\x1b[31m\\n::error::x'\nY='\x1b]0;t\x07'\n{RUN} model.name=$X \"model.y=$Y\" 'model.\x1b[2J=1'\n",
    "sbatch": "".join(f"#SBATCH --nodes={i}\n" for i in range(5_000)) + f"#SBATCH --nodes=99999999999999999999\n#SBATCH -N -1\nsrun {RUN}\n",
    "sizes": f"torchrun --nproc_per_node=99999999999999 --nnodes=99999999999999 scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config\n{RUN} model.seq_length=1e999 model.num_layers={'9' * 5_000}\n",
    "overrides": f"{RUN} '{'[' * 3_000}' 'model.a={'[' * 3_000}' 'model.b={'{a:' * 3_000}' '~model' '+model=1' 'model.seq_length=${{model.seq_length}}' '=' '==' '.=1' 'model.=1' 'model.x=!!python/name:os.system'\n",
}  # fmt: skip
"""Scripts that hold a launch."""

NAMES: tuple[str | bytes, ...] = (
    "a,b.py", "a:b.py", "a%0Ab.py", "a\nb.py", "a\r\n::error::x.py", "a\x1b[31mb.py", "a\x1b]0;t\x07.py", "a\u202eyp.b.py", "a\u2028b.py",
    "a b.py", "'a'.py", '"a".py', "<a>&b.py", "|a|.py", "`a`.py", "[a](b).py", "-a.py", "--fix.py", "a\tb.py", "]]>.py", "ä名.py", "a\\b.py",
    "*.py", "?.py", "#.py", "@a.py", "~.py", "$HOME.py", "a" * 240 + ".py", b"\xff\xfe.py", b"a\xed\xa0\x80.py",
)  # fmt: skip
"""File names; bytes where they are no text."""

SETTINGS: dict[str, bytes] = {
    "broken": b"[", "NUL": b"a = 1\0", "Latin-1": b"exclude = ['\xfc']", "UTF-16": "exclude = []".encode("utf-16"),
    "unknown key": b"exlude = ['a']", "wrong type": b"exclude = 3",
    "deep": b"a = " + b"[" * 5_000 + b"]" * 5_000, "deep tables": b"[" + b".".join([b"a"] * 5_000) + b"]\n", "huge number": b"a = " + b"9" * 9_000,
    "control characters": b'"\\u001b[31m%0A::error::" = 1',
}  # fmt: skip
"""mblint.toml files that cannot be used."""

LAUNCHES: dict[str, bytes] = {
    "broken": b'{"id": ', "deep": b'{"set": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", "no object": b"[1, 2]", "NUL": b'{"id": "a\0"}',
    "Latin-1": b'{"id": "\xfc"}', "huge number": b'{"world_size": ' + b"9" * 9_000 + b"}", "wrong types": b'{"recipe": 3, "set": [], "world_size": "x"}',
    "unknown key": b'{"recpie": "a"}', "UTF-16": '{"id": "a"}'.encode("utf-16"),
}  # fmt: skip
"""Launch lists that cannot be used."""
