"""Channels among groups."""
from umbra.nn import functional as F
from umbra.nn.modules.module import Module


class ChannelShuffle(Module):
    """Puts channels of different groups side by side."""

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, input):
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self):
        return f"groups={self.groups}"
