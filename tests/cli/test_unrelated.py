"""Repositories full of YAML files and scripts that are none of mblint's business."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pytest

YAML = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: app-{n}}}\nspec:\n  replicas: {n}\n  template:\n    spec:\n"
    '      containers: [{{name: main, command: ["python", "/srv/train.py", "--lr", "0.1"]}}]\n',
    "name: ci-{n}\non: [push]\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pytest -q -n {n}\n"
    "      - run: torchrun --nproc_per_node={n} examples/train.py --config configs/small.yaml\n",
    "defaults:\n  - _self_\n  - model: gpt_{n}\ntrainer: {{max_epochs: {n}}}\noptimizer: {{_target_: torch.optim.AdamW, lr: 3.0e-4}}\n"
    "model: {{hidden_size: {n}, seq_length: 2048}}\n",
    "model_name_or_path: org/model-{n}\nstage: sft\nfinetuning_type: lora\nper_device_train_batch_size: {n}\nbf16: true\n",
    "services:\n  db: {{image: 'postgres:{n}'}}\n  worker: {{build: ., command: celery -A app worker -c {n}, depends_on: [db]}}\n",
)
SCRIPTS = (
    '#!/bin/bash\nset -euo pipefail\nfor f in *.txt; do\n  gzip "$f"\ndone\necho {n}\n',
    "#!/bin/bash\n#SBATCH --nodes={n}\nexport MASTER_ADDR=$(hostname)\nsrun torchrun --nproc_per_node 8 main.py \\\n  --lr 1e-4\n",
    "accelerate launch --config_file ds.yaml train.py --per_device_train_batch_size {n}\n",
    "#!/bin/bash\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\npython pretrain_bert.py --num-layers {n} --hidden-size 1024 $@\n",
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 YAML files and 500 scripts."""
    root = tmp_path_factory.mktemp("unrelated")
    (root / ".git").mkdir()
    for count, suffix, texts in ((2000, "yaml", YAML), (500, "sh", SCRIPTS)):
        for number in range(count):
            path = root / f"part{number % 40}" / f"f{number}.{suffix}"
            path.parent.mkdir(exist_ok=True)
            path.write_text(texts[number % len(texts)].format(n=1 + number % 9) * (1 + number % 3 * 10 * (suffix == "sh")))
    return root


def check(root: Path) -> tuple[int, str, float]:
    """Exit code, output and processor time, seconds, of a run in which nothing is remembered."""
    before = getrusage(RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "mblint", "check", ".", "--isolated", "--upstream", "none", "--no-cache", "--format", "concise"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    after = getrusage(RUSAGE_CHILDREN)
    return done.returncode, done.stdout + done.stderr, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_nothing_is_said_of_them_and_soon(repository: Path) -> None:
    code, output, seconds = check(repository)
    assert code == 4 and "no recipe found" in output
    assert seconds < 3


def test_a_script_among_them_is_found(repository: Path) -> None:
    run = repository / "part1" / "ours.sh"
    run.write_text("torchrun --nproc_per_node=8 scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config model.cpu_offload=true\n")
    try:
        code, output, _ = check(repository)
    finally:
        run.unlink()
    assert code == 1 and {line.partition(":")[0] for line in output.splitlines() if "MB" in line} == {"part1/ours.sh"}
