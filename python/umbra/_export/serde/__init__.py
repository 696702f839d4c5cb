"""Programs as bytes: what `torch.export.save` puts into one file, in parts."""
