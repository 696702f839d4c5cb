"""Softmax over many classes, by their frequency."""
import collections

import umbra
from umbra.nn import functional as F
from umbra.nn.modules.container import ModuleList, Sequential
from umbra.nn.modules.linear import Linear
from umbra.nn.modules.module import Module

_ASMoutput = collections.namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Classes in clusters that `cutoffs` separate: the frequent ones by one matrix, the others by their cluster and by one of less rank.

    Classes are numbered from the most frequent one on (Grave et al., "Efficient softmax approximation for GPUs").
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if cutoffs != sorted(cutoffs) or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1 or len(set(cutoffs)) != len(cutoffs) or any(
                int(c) != c for c in cutoffs):
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is between 1 "
                             "and n_classes-1")
        options = {"device": device, "dtype": dtype}
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, cutoffs + [n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            rank = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(Sequential(Linear(in_features, rank, bias=False, **options), Linear(rank, size, bias=False, **options)))

    def reset_parameters(self):
        self.head.reset_parameters()
        for projection, out in self.tail:
            projection.reset_parameters()
            out.reset_parameters()

    def forward(self, input_, target_):
        """The log probability of each target, and the mean loss."""
        if target_.dim() == 1:
            if input_.size(0) != target_.size(0):
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input_.dim() != 2:
                raise RuntimeError("1D target tensor expects 2D input tensors, but found inputs with size", input_.size())
        elif target_.dim() == 0:
            if input_.dim() != 1:
                raise RuntimeError("0D target tensor expects 1D input tensors, but found inputs with size", input_.size())
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        batched = target_.dim() > 0
        input, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        used = 0
        output, gather = input.new_zeros(target.size(0)), target.new_empty(target.size(0))
        for i, (low, high) in enumerate(zip([0, *self.cutoffs], self.cutoffs)):
            rows = ((target >= low) & (target < high)).nonzero().squeeze()
            if rows.numel() == 0:
                continue
            if i == 0:
                gather.index_copy_(0, rows, target[rows])
            else:
                relative = (target[rows] - low).reshape(-1)
                scores = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
                gather.index_fill_(0, rows, self.shortlist_size + i - 1)
                output.index_copy_(0, rows, scores.gather(1, relative.unsqueeze(1)).squeeze(1))
            used += rows.numel()
        if used != target.size(0):
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                               f"{target.max().item()}] were found. ")
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, gather.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input, head_output):
        """The log probabilities of all classes, from what the head gave."""
        head = F.log_softmax(head_output, dim=1)
        out = input.new_empty((head_output.size(0), self.n_classes))
        out[:, :self.shortlist_size] = head[:, :self.shortlist_size]
        for i, (start, stop) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            cluster = F.log_softmax(self.tail[i](input), dim=1)
            out[:, start:stop] = cluster + head[:, self.shortlist_size + i].unsqueeze(1)
        return out

    def log_prob(self, input):
        """The log probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input):
        """The most probable class of each row. Clusters are only looked into where the head chooses one."""
        head = self.head(input)
        output = umbra.argmax(head, dim=1)
        in_shortlist = output < self.shortlist_size
        if in_shortlist.all():
            return output
        if not in_shortlist.any():
            return umbra.argmax(self._get_full_log_prob(input, head), dim=1)
        rows = ~in_shortlist
        output[rows] = umbra.argmax(self._get_full_log_prob(input[rows], head[rows]), dim=1)
        return output
