"""The options of Megatron-Bridge's own runners, for when no checkout is at hand to read them from.

Where the runner's source is found beside the script it is read instead (`argparse_table.read_table`). The
tables follow scripts/training/run_recipe.py, setup_experiment.py and scripts/performance/argument_parser.py
of August 2026, with the names that earlier releases (25.09, 25.11) used for the same things.
"""

from __future__ import annotations

from mblint.launch.argparse_table import Option, Table


def _options(text: str) -> tuple[Option, ...]:
    """`names [dest] [kind] [nargs]`, one option a line."""
    options = []
    for line in text.strip().splitlines():
        names_text, *rest = line.split()
        names = tuple(names_text.split("|"))
        fields = dict(field.split("=") for field in rest)
        long = next((n for n in names if n.startswith("--")), names[0])
        count = fields.get("nargs")
        nargs = int(count) if count is not None and count.isdigit() else count
        dest = fields.get("dest") or long.lstrip("-").replace("-", "_")
        options.append(Option(names, dest, nargs, fields.get("kind", "str")))
    return tuple(options)


UNIFIED = Table(
    _options(
        """
--model
--recipe
--mode
--step-func|--step_func|--step
--dataset
-ms|--max_steps kind=int
-gb|--global_batch_size kind=int
-mb|--micro_batch_size kind=int
-sl|--seq_length kind=int
-tp|--tensor_model_parallel_size kind=int
-pp|--pipeline_model_parallel_size kind=int
-cp|--context_parallel_size kind=int
-vp|--virtual_pipeline_model_parallel_size kind=int
-ep|--expert_model_parallel_size kind=int
-etp|--expert_tensor_parallel_size kind=int
--lr kind=float
--min_lr kind=float
--warmup_iters kind=int
--pretrained_checkpoint
--save_dir
--load_dir
--save_interval kind=int
--dry-run|--dry_run dest=dryrun nargs=0
--deterministic nargs=0
--dump-env|--dump_env dest=dump_env nargs=0
--peft_scheme
--hf_path
"""
    ),
    abbreviations=False,
)
"""scripts/training/run_recipe.py; the last two and `--step` are of older releases."""

UNIFIED_FIELDS: dict[str, str] = {
    "max_steps": "train.train_iters",
    "global_batch_size": "train.global_batch_size",
    "micro_batch_size": "train.micro_batch_size",
    "seq_length": "dataset.seq_length",
    "tensor_model_parallel_size": "model.tensor_model_parallel_size",
    "pipeline_model_parallel_size": "model.pipeline_model_parallel_size",
    "context_parallel_size": "model.context_parallel_size",
    "virtual_pipeline_model_parallel_size": "model.virtual_pipeline_model_parallel_size",
    "expert_model_parallel_size": "model.expert_model_parallel_size",
    "expert_tensor_parallel_size": "model.expert_tensor_parallel_size",
    "lr": "optimizer.lr",
    "min_lr": "optimizer.min_lr",
    "warmup_iters": "scheduler.lr_warmup_iters",
    "pretrained_checkpoint": "checkpoint.pretrained_checkpoint",
    "save_dir": "checkpoint.save",
    "load_dir": "checkpoint.load",
    "save_interval": "checkpoint.save_interval",
}
"""Short option to override, in the order in which the unified runner puts them before the trailing
overrides."""

UNIFIED_SUBMIT = Table(
    _options(
        """
--nodes kind=int
--gpus-per-node|--gpus_per_node kind=int
--account
--partition
--time
--gres
--additional-slurm-params|--additional_slurm_params
--no-gpu-resource-request nargs=0
--container-image
--mount
--env
--srun-arg dest=srun_args
-lmc|--peak-mem-clk|--peak_mem_clk kind=int
--experiment-name
--submission-dry-run|--dry-run nargs=0
--wait nargs=0
--local nargs=0
--script
--launcher
--devices kind=int
--ssh-tunnel nargs=0
--host
--user
--remote-job-dir
--identity
--packager
--no-detach nargs=0
--tail-logs nargs=0
--detach nargs=0
"""
    ),
    abbreviations=False,
)
"""scripts/training/setup_experiment.py (and train.sh), launch_with_nemo_run.py: what they keep for
themselves."""

PERFORMANCE = Table(
    _options(
        """
--domain
-m|--model_family_name|--model_name dest=model_family_name
-mr|--model_recipe_name dest=model_recipe_name
--model_size
--use_recipes nargs=0
-nh|--nemo_home
--detach
--max_retries kind=int
-ng|--num_gpus kind=int
--hidden_size kind=int
--num_layers kind=int
--num_moe_experts kind=int
--pipeline_model_parallel_layout
--first_k_dense_replace kind=int
-d|--dryrun nargs=0
--task
-ms|--max_steps kind=int
-gb|--global_batch_size kind=int
-mb|--micro_batch_size kind=int
-sl|--seq_length kind=int
--distributed_timeout_minutes kind=int
--lr kind=float
--min_lr kind=float
--warmup_iters kind=int
--pretrained_checkpoint
--save_dir
--load_dir
--save_interval kind=int
--most_recent_k kind=int
--data
--c4_root
--c4_train_shards nargs=+
--dataset_paths nargs=*
--dataset_root
--index_mapping_dir
--dataset_name
--packed_sequence nargs=0
--head_only nargs=0
--diffusion_dataset_path
--tokenizer_type
--tokenizer_model
--vocab_size kind=int
-hf|--hf_token
--offline nargs=0
-tp|--tensor_model_parallel_size kind=int
-pp|--pipeline_model_parallel_size kind=int
-cp|--context_parallel_size kind=int
-vp|--virtual_pipeline_model_parallel_size kind=optional_int
-ep|--expert_model_parallel_size kind=int
-et|--expert_tensor_parallel_size kind=int nargs=?
-a|--account
-p|--partition
-t|--time_limit
--preempt_time kind=int
-gn|--gpus_per_node kind=int
-i|--container_image
-cm|--custom_mounts
-ce|--custom_env_vars
-E|--env
-cs|--custom_srun_args
-cb|--custom_bash_cmds nargs=*
--gres
--additional_slurm_params
--packager
--enable_pct_binding
--kubeflow_namespace
--csp
--kubeflow_workdir_pvc
--kubeflow_workdir_pvc_path
--kubeflow_workdir_local_path
--kubeflow_image_pull_secrets
--kubeflow_volumes_json
--kubeflow_volume_mounts_json
--kubeflow_node_selectors_json
--kubeflow_tolerations_json
--kubeflow_affinity_json
--kubeflow_env_list_json
--kubeflow_extra_resource_requests_json
--kubeflow_extra_resource_limits_json
--kubeflow_pod_spec_overrides_json
--kubeflow_pod_annotations_json
--kubeflow_container_kwargs_json
--kubeflow_labels_json
-g|--gpu
-c|--compute_dtype
--fp8_recipe
--optimizer_type
-vb|--enable_vboost kind=bool
-lgc|--lock_gpu_freq kind=int
-lmc|--peak_mem_clk kind=int
-en|--enable_nsys nargs=0
--export_nsys_sqlite nargs=0
-pyp|--pytorch_profiler kind=bool
--profiling_start_step kind=int
--profiling_stop_step kind=int
-mh|--record_memory_history kind=bool
--profiling_gpu_metrics nargs=0
--profiling_ranks
--nsys_trace
--nsys_extra_args
--use_tokendrop kind=bool
--use_megatron_fsdp kind=bool
--nccl_ub kind=bool
--cuda_graph_impl
--cuda_graph_scope kind=list
--moe_a2a_overlap kind=bool
-rl|--recompute_num_layers kind=int
-ol|--activation_offload_layers kind=int
--recompute_modules kind=list
--moe_flex_dispatcher_backend kind=optional_str
--deterministic nargs=0
-wdk|--wandb_key
-wdp|--wandb_project_name
-wde|--wandb_entity_name
-wdj|--wandb_experiment_name
-wds|--wandb_save_dir
-l|--log_dir
--save_config_filepath
--dump_env nargs=0
-cv|--config_variant
--list_config_variants nargs=0
--is_long_convergence_run nargs=0
--retry_on_testing_failure nargs=0
--golden_values_path
--config_file
"""
    )
)
"""scripts/performance: argument_parser.py. `--model_name`, `--model_size`, `--fp8_recipe`, `--config_file`
are of 25.09."""

TORCHRUN = Table(
    _options(
        """
--nnodes
--nproc-per-node|--nproc_per_node
--rdzv-backend|--rdzv_backend
--rdzv-endpoint|--rdzv_endpoint
--rdzv-id|--rdzv_id
--rdzv-conf|--rdzv_conf
--standalone nargs=0
--max-restarts|--max_restarts
--monitor-interval|--monitor_interval
--start-method|--start_method
--role
-m|--module nargs=0
--no-python|--no_python nargs=0
--run-path|--run_path nargs=0
--log-dir|--log_dir
-r|--redirects
-t|--tee
--local-ranks-filter|--local_ranks_filter
--node-rank|--node_rank
--master-addr|--master_addr
--master-port|--master_port
--local-addr|--local_addr
"""
    )
)

SRUN = Table(
    _options(
        """
-N|--nodes
-n|--ntasks
--ntasks-per-node
--gpus-per-node
--gpus-per-task
-G|--gpus
--gres
-A|--account
-p|--partition
-t|--time
-J|--job-name
-w|--nodelist
-x|--exclude
-c|--cpus-per-task
-o|--output
-e|--error
-l|--label nargs=0
-C|--constraint
-q|--qos
-D|--chdir
-K|--kill-on-bad-exit
--export
--mpi
--mem
--container-image
--container-mounts
--container-workdir
--container-name
--container-env
--container-writable nargs=0
--no-container-mount-home nargs=0
--container-mount-home nargs=0
--container-remap-root nargs=0
--exclusive nargs=0
--overlap nargs=0
--pty nargs=0
--unbuffered nargs=0
-u nargs=0
--wait
--jobid
--cpu-bind
--cpu_bind
--dependency
--signal
--segment
--comment
--wrap
--parsable nargs=0
--requeue nargs=0
"""
    ),
    abbreviations=False,
)
"""srun, sbatch and #SBATCH lines: what says how many processes there are, and what takes a value."""
