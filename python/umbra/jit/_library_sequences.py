"""Recurrent networks and attention as the compiler can read them."""
from typing import List, Optional, Tuple

import umbra as torch
from umbra import Tensor
from umbra.nn.utils.rnn import PackedSequence


# ---- sequences of different lengths ----

def _inverted(permutation: Optional[Tensor]) -> Optional[Tensor]:
    if permutation is None:
        return None
    out = torch.empty_like(permutation, memory_format=torch.contiguous_format)
    return out.scatter_(0, permutation, torch.arange(0, permutation.numel(), device=permutation.device))


def _ordered(states: Tensor, order: Optional[Tensor]) -> Tensor:
    return states if order is None else states.index_select(1, order)


def pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    order: Optional[Tensor] = None
    if not enforce_sorted:
        lengths, order = torch.sort(lengths, descending=True)
        input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = torch._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, order, _inverted(order))


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    length = -1
    if total_length is not None:
        longest = sequence.batch_sizes.size(0)
        if total_length < longest:
            raise ValueError("Expected total_length to be at least the length of the longest sequence in input, but got "
                             f"total_length={total_length} and max sequence length being {longest}")
        length = total_length
    padded, lengths = torch._pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, length)
    order = sequence.unsorted_indices
    if order is not None:
        return padded.index_select(0 if batch_first else 1, order), lengths.index_select(0, order.cpu())
    return padded, lengths


# ---- networks: of one tensor, and of a packed sequence ----

def _first_hidden(hx: Optional[Tensor], sizes: List[int], like: Tensor, batched: bool) -> Tensor:
    if hx is None:
        return torch.zeros(sizes, dtype=like.dtype, device=like.device)
    return hx if batched else hx.unsqueeze(1)


class _RNN:
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"RNN: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        along = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(along)
        rows = self.num_layers * (2 if self.bidirectional else 1)
        hidden = _first_hidden(hx, [rows, input.size(along), self.hidden_size], input, batched)
        if self.mode == "RNN_TANH":
            out, last = torch.rnn_tanh(input, hidden, self._flat_weights, self.bias, self.num_layers, self.dropout,
                                       self.training, self.bidirectional, self.batch_first)
        else:
            out, last = torch.rnn_relu(input, hidden, self._flat_weights, self.bias, self.num_layers, self.dropout,
                                       self.training, self.bidirectional, self.batch_first)
        if not batched:
            return out.squeeze(along), last.squeeze(1)
        return out, last


class _PackedRNN:
    def forward(self, input: PackedSequence, hx: Optional[Tensor] = None) -> Tuple[PackedSequence, Tensor]:
        data, sizes, order, back = input
        rows = self.num_layers * (2 if self.bidirectional else 1)
        hidden = _first_hidden(None if hx is None else _ordered(hx, order), [rows, int(sizes[0]), self.hidden_size], data, True)
        if self.mode == "RNN_TANH":
            out, last = torch.rnn_tanh(data, sizes, hidden, self._flat_weights, self.bias, self.num_layers, self.dropout,
                                       self.training, self.bidirectional)
        else:
            out, last = torch.rnn_relu(data, sizes, hidden, self._flat_weights, self.bias, self.num_layers, self.dropout,
                                       self.training, self.bidirectional)
        return PackedSequence(out, sizes, order, back), _ordered(last, back)


class _GRU:
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"GRU: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        along = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(along)
        rows = self.num_layers * (2 if self.bidirectional else 1)
        hidden = _first_hidden(hx, [rows, input.size(along), self.hidden_size], input, batched)
        out, last = torch.gru(input, hidden, self._flat_weights, self.bias, self.num_layers, self.dropout,
                              self.training, self.bidirectional, self.batch_first)
        if not batched:
            return out.squeeze(along), last.squeeze(1)
        return out, last


class _PackedGRU:
    def forward(self, input: PackedSequence, hx: Optional[Tensor] = None) -> Tuple[PackedSequence, Tensor]:
        data, sizes, order, back = input
        rows = self.num_layers * (2 if self.bidirectional else 1)
        hidden = _first_hidden(None if hx is None else _ordered(hx, order), [rows, int(sizes[0]), self.hidden_size], data, True)
        out, last = torch.gru(data, sizes, hidden, self._flat_weights, self.bias, self.num_layers, self.dropout,
                              self.training, self.bidirectional)
        return PackedSequence(out, sizes, order, back), _ordered(last, back)


class _LSTM:
    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"LSTM: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        along = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(along)
        if hx is None:
            rows = self.num_layers * (2 if self.bidirectional else 1)
            width = self.proj_size if self.proj_size > 0 else self.hidden_size
            hidden = torch.zeros([rows, input.size(along), width], dtype=input.dtype, device=input.device)
            cell = torch.zeros([rows, input.size(along), self.hidden_size], dtype=input.dtype, device=input.device)
        else:
            hidden, cell = hx
            if not batched:
                hidden, cell = hidden.unsqueeze(1), cell.unsqueeze(1)
        out, last, last_cell = torch.lstm(input, [hidden, cell], self._flat_weights, self.bias, self.num_layers, self.dropout,
                                          self.training, self.bidirectional, self.batch_first)
        if not batched:
            return out.squeeze(along), (last.squeeze(1), last_cell.squeeze(1))
        return out, (last, last_cell)


class _PackedLSTM:
    def forward(self, input: PackedSequence, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[PackedSequence, Tuple[Tensor, Tensor]]:
        data, sizes, order, back = input
        if hx is None:
            rows = self.num_layers * (2 if self.bidirectional else 1)
            width = self.proj_size if self.proj_size > 0 else self.hidden_size
            hidden = torch.zeros([rows, int(sizes[0]), width], dtype=data.dtype, device=data.device)
            cell = torch.zeros([rows, int(sizes[0]), self.hidden_size], dtype=data.dtype, device=data.device)
        else:
            hidden, cell = _ordered(hx[0], order), _ordered(hx[1], order)
        out, last, last_cell = torch.lstm(data, sizes, [hidden, cell], self._flat_weights, self.bias, self.num_layers, self.dropout,
                                          self.training, self.bidirectional)
        return PackedSequence(out, sizes, order, back), (_ordered(last, back), _ordered(last_cell, back))


class _LSTMCell:
    def forward(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor]:
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = torch.zeros([input.size(0), self.hidden_size], dtype=input.dtype, device=input.device)
            hidden, cell = zeros, zeros
        else:
            hidden, cell = hx
            if not batched:
                hidden = hidden.unsqueeze(0)
                cell = cell.unsqueeze(0)
        hidden, cell = torch.lstm_cell(input, [hidden, cell], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if not batched:
            return hidden.squeeze(0), cell.squeeze(0)
        return hidden, cell


class _GRUCell:
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hidden = torch.zeros([input.size(0), self.hidden_size], dtype=input.dtype, device=input.device)
        else:
            hidden = hx if batched else hx.unsqueeze(0)
        hidden = torch.gru_cell(input, hidden, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return hidden if batched else hidden.squeeze(0)


class _RNNCell:
    def forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hidden = torch.zeros([input.size(0), self.hidden_size], dtype=input.dtype, device=input.device)
        else:
            hidden = hx if batched else hx.unsqueeze(0)
        if self.nonlinearity == "tanh":
            hidden = torch.rnn_tanh_cell(input, hidden, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        elif self.nonlinearity == "relu":
            hidden = torch.rnn_relu_cell(input, hidden, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        else:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return hidden if batched else hidden.squeeze(0)


# ---- attention ----

def _projected(query: Tensor, key: Tensor, value: Tensor, in_proj_weight: Optional[Tensor], in_proj_bias: Optional[Tensor],
               use_separate_proj_weight: bool, q_proj_weight: Optional[Tensor], k_proj_weight: Optional[Tensor],
               v_proj_weight: Optional[Tensor]) -> Tuple[Tensor, Tensor, Tensor]:
    if use_separate_proj_weight:
        assert q_proj_weight is not None, "use_separate_proj_weight is True but q_proj_weight is None"
        assert k_proj_weight is not None, "use_separate_proj_weight is True but k_proj_weight is None"
        assert v_proj_weight is not None, "use_separate_proj_weight is True but v_proj_weight is None"
        q, k, v = torch.linear(query, q_proj_weight), torch.linear(key, k_proj_weight), torch.linear(value, v_proj_weight)
    else:
        assert in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None"
        parts = torch.chunk(in_proj_weight, 3)
        q, k, v = torch.linear(query, parts[0]), torch.linear(key, parts[1]), torch.linear(value, parts[2])
    if in_proj_bias is not None:
        biases = torch.chunk(in_proj_bias, 3)
        q, k, v = q + biases[0], k + biases[1], v + biases[2]
    return q, k, v


def _added_to_scores(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype == torch.bool:
        return torch.zeros_like(mask, dtype=like.dtype).masked_fill_(mask, float("-inf"))
    return mask


def _masks_of_heads(attn_mask: Optional[Tensor], key_padding_mask: Optional[Tensor], like: Tensor, batch: int, heads: int, added: int) -> Optional[Tensor]:
    mask = attn_mask
    if mask is not None:
        mask = _added_to_scores(mask, like)
        if mask.dim() == 2:
            mask = mask.unsqueeze(0)
        mask = torch.ops.aten.pad(mask, [0, added])
    if key_padding_mask is not None:
        hidden = _added_to_scores(key_padding_mask, like)
        keys = hidden.size(-1)
        hidden = hidden.reshape(batch, 1, 1, keys).expand(-1, heads, -1, -1).reshape(batch * heads, 1, keys)
        hidden = torch.ops.aten.pad(hidden, [0, added])
        mask = hidden if mask is None else mask + hidden
    return mask


def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Optional[Tensor],
                                 in_proj_bias: Optional[Tensor], bias_k: Optional[Tensor], bias_v: Optional[Tensor], add_zero_attn: bool, dropout_p: float,
                                 out_proj_weight: Tensor, out_proj_bias: Optional[Tensor], training: bool = True,
                                 key_padding_mask: Optional[Tensor] = None, need_weights: bool = True, attn_mask: Optional[Tensor] = None,
                                 use_separate_proj_weight: bool = False, q_proj_weight: Optional[Tensor] = None, k_proj_weight: Optional[Tensor] = None,
                                 v_proj_weight: Optional[Tensor] = None, static_k: Optional[Tensor] = None, static_v: Optional[Tensor] = None,
                                 average_attn_weights: bool = True, is_causal: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    batched = query.dim() == 3
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
    length, batch, width = query.shape
    assert width == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}"
    per_head = width // num_heads
    assert per_head * num_heads == width, f"embed_dim {width} not divisible by num_heads {num_heads}"
    q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias, use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight)
    if bias_k is not None:
        k = torch.cat([k, bias_k.repeat(1, batch, 1)])
    if bias_v is not None:
        v = torch.cat([v, bias_v.repeat(1, batch, 1)])
    rows = batch * num_heads
    q = q.reshape(length, rows, per_head).transpose(0, 1)
    k = k.reshape(k.size(0), rows, per_head).transpose(0, 1) if static_k is None else static_k
    v = v.reshape(v.size(0), rows, per_head).transpose(0, 1) if static_v is None else static_v
    if add_zero_attn:
        k = torch.cat([k, torch.zeros_like(k[:, :1])], 1)
        v = torch.cat([v, torch.zeros_like(v[:, :1])], 1)
    mask = _masks_of_heads(attn_mask, key_padding_mask, q, batch, num_heads, k.size(1) - key.size(0))
    scores = torch.bmm(q * (1.0 / float(per_head) ** 0.5), k.transpose(-2, -1))
    if mask is not None:
        scores = scores + mask
    weights = torch.softmax(scores, -1)
    dropped = torch.dropout(weights, dropout_p, True) if training and dropout_p > 0.0 else weights
    out = torch.bmm(dropped, v).transpose(0, 1).reshape(length * batch, width)
    out = torch.linear(out, out_proj_weight, out_proj_bias)
    out = out.reshape(length, batch, out.size(1))  # the last projection may change the width
    if not batched:
        out = out.squeeze(1)
    if not need_weights:
        return out, None
    weights = weights.reshape(batch, num_heads, length, k.size(1))
    if average_attn_weights:
        weights = weights.mean(1)
    return out, weights if batched else weights.squeeze(0)


class _MultiheadAttention:
    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor] = None, need_weights: bool = True,
                attn_mask: Optional[Tensor] = None, average_attn_weights: bool = True, is_causal: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
        turned = self.batch_first and query.dim() == 3
        if turned:
            query, key, value = query.transpose(1, 0), key.transpose(1, 0), value.transpose(1, 0)
        out, weights = multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn,
            self.dropout, self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask, need_weights, attn_mask,
            self.in_proj_weight is None, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight, None, None, average_attn_weights, is_causal)
        return (out.transpose(1, 0) if turned else out), weights
