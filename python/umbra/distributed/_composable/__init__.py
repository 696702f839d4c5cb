"""torch.distributed.fsdp's older name."""
