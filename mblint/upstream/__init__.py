"""What is known of megatron-bridge: where its source is, tables of fields, models and GPUs."""
