// einsum: products and sums by the names of dimensions, two tensors at a time, each pair as one batched matrix product.
#include <algorithm>
#include <map>

#include "ops/common/unbacked.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using Labels = std::vector<int>;  // a letter, or kEllipsis + i for a dimension that "..." stands for

constexpr int kEllipsis = 256;

struct Operand {
  Tensor tensor;
  Labels labels;
};

bool has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

// One side of the equation for one tensor. Of fewer dimensions "..." stands for the last ones: they line up from the
// right.
Labels read_labels(const std::string& text, size_t number, int64_t covered, int64_t most_covered) {
  Labels labels;
  bool dots = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ' ') continue;
    if (c == '.') {
      check(text.compare(i, 3, "...") == 0 && !dots, "einsum(): found '.' for operand ", number,
            " that is not part of any ellipsis");
      for (int64_t k = most_covered - covered; k < most_covered; ++k) labels.push_back(kEllipsis + static_cast<int>(k));
      dots = true;
      i += 2;
      continue;
    }
    check(std::isalpha(static_cast<unsigned char>(c)), "einsum(): invalid subscript given at index ", i,
          " in the equation string, subscripts must be in [a-zA-Z]");
    labels.push_back(c);
  }
  return labels;
}

int64_t letters_in(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return c != ' ' && c != '.'; });
}

std::vector<std::string> split_inputs(const std::string& text) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == ',') parts.emplace_back();
    else parts.back() += c;
  }
  return parts;
}

// Without "->": what "..." covers, then the letters that occur once, in alphabetical order.
Labels implied_output(const std::vector<Labels>& inputs, int64_t most_covered) {
  std::map<int, int> counts;
  for (const Labels& labels : inputs)
    for (int label : labels) ++counts[label];
  Labels out;
  for (int64_t k = 0; k < most_covered; ++k) out.push_back(kEllipsis + static_cast<int>(k));
  for (auto [label, count] : counts)
    if (label < kEllipsis && count == 1) out.push_back(label);
  return out;
}

// A letter that a tensor has twice means its diagonal.
Operand without_repeats(Operand o) {
  for (size_t i = 0; i < o.labels.size(); ++i)
    for (size_t j = i + 1; j < o.labels.size();) {
      if (o.labels[i] != o.labels[j]) {
        ++j;
        continue;
      }
      int64_t first = static_cast<int64_t>(i), second = static_cast<int64_t>(j);
      SymInt a = o.tensor.sym_size(first), b = o.tensor.sym_size(second);
      check(expect_equal(a, b), "einsum(): subscript ", static_cast<char>(o.labels[i]),
            " is repeated for operand but the sizes don't match, ", a, " != ", b);
      // diagonal() puts the joint dimension last; it goes back to the first place.
      o.tensor = o.tensor.diagonal(0, first, second);
      std::vector<int64_t> order;
      for (int64_t d = 0; d + 1 < o.tensor.dim(); ++d) order.push_back(d);
      order.insert(order.begin() + first, o.tensor.dim() - 1);
      o.tensor = o.tensor.permute(order);
      o.labels.erase(o.labels.begin() + second);
    }
  return o;
}

Operand sum_away(Operand o, const std::function<bool(int)>& needed) {
  std::vector<int64_t> dims;
  Labels kept;
  for (size_t i = 0; i < o.labels.size(); ++i) {
    if (needed(o.labels[i])) kept.push_back(o.labels[i]);
    else dims.push_back(static_cast<int64_t>(i));
  }
  if (!dims.empty()) o.tensor = o.tensor.sum(IntArrayRef(dims));
  o.labels = std::move(kept);
  return o;
}

// The tensor with its dimensions in the order of `labels`; size 1 where it does not have one.
Tensor arranged(const Operand& o, const Labels& labels) {
  std::vector<int64_t> order;
  for (int label : labels)
    if (auto at = std::find(o.labels.begin(), o.labels.end(), label); at != o.labels.end())
      order.push_back(at - o.labels.begin());
  Tensor t = o.tensor.permute(order);
  for (size_t i = 0; i < labels.size(); ++i)
    if (!has(o.labels, labels[i])) t = t.unsqueeze(static_cast<int64_t>(i));
  return t;
}

/// The dimensions of the output first, in its order, then the others: results need the fewest copies then.
Operand in_output_order(const Operand& o, const Labels& output) {
  Labels order, rest;
  for (int label : output)
    if (has(o.labels, label)) order.push_back(label);
  for (int label : o.labels)
    if (!has(output, label)) rest.push_back(label);
  std::sort(rest.begin(), rest.end());
  order.insert(order.end(), rest.begin(), rest.end());
  return order == o.labels ? o : Operand{arranged(o, order), order};
}

/// Whether all of the first labels come before all of the others in the output.
bool precedes(const Labels& first, const Labels& others, const Labels& output) {
  if (first.empty() || others.empty()) return false;
  auto place = [&](int label) { return std::find(output.begin(), output.end(), label); };
  auto by_place = [&](int a, int b) { return place(a) < place(b); };
  return place(*std::max_element(first.begin(), first.end(), by_place)) <
         place(*std::min_element(others.begin(), others.end(), by_place));
}

SymInt size_of(const Operand& o, int label) {
  auto at = std::find(o.labels.begin(), o.labels.end(), label);
  return at == o.labels.end() ? SymInt(1) : o.tensor.sym_size(at - o.labels.begin());
}

// The product of two tensors, with the dimensions that `needed` does not name summed over: [batch, left, sum] x [batch,
// sum, right], or the other way round where the output has it so.
Operand contract(Operand a, Operand b, const Labels& output, const std::function<bool(int)>& needed) {
  a = sum_away(std::move(a), [&](int label) { return needed(label) || has(b.labels, label); });
  b = sum_away(std::move(b), [&](int label) { return needed(label) || has(a.labels, label); });
  Labels batch, left, right, summed;
  SymShape batch_sizes, left_sizes, right_sizes;
  auto place = [&](int label) {
    SymInt of_a = size_of(a, label), of_b = size_of(b, label);
    bool in_a = has(a.labels, label) && !equal_or(of_a, 1, false);
    bool in_b = has(b.labels, label) && !equal_or(of_b, 1, false);
    bool both = in_a == in_b;  // a dimension of size 1 broadcasts: it belongs to the side that has more
    check(!(in_a && in_b) || expect_equal(of_a, of_b),
          "einsum(): operands do not broadcast with remapped shapes: a dimension has sizes ", of_a, " and ", of_b);
    if (!needed(label)) return summed.push_back(label);
    (both ? batch : in_a ? left : right).push_back(label);
    (both ? batch_sizes : in_a ? left_sizes : right_sizes).push_back(in_a ? of_a : of_b);
  };
  for (int label : a.labels) place(label);
  for (int label : b.labels)
    if (!has(a.labels, label)) place(label);

  // A size that only the run tells is taken not to be one: that of the other side is then the same, or one.
  auto joint = [&](int label) {
    SymInt of_a = size_of(a, label);
    return equal_or(of_a, 1, false) ? size_of(b, label) : of_a;
  };
  auto matrix = [&](const Operand& o, const Labels& rows, const Labels& columns) {
    Labels order = batch;
    order.insert(order.end(), rows.begin(), rows.end());
    order.insert(order.end(), columns.begin(), columns.end());
    Labels all = order;
    for (int label : o.labels)
      if (!has(all, label)) all.push_back(label);  // size 1, named by the other side
    Tensor t = arranged(o, all);
    SymInt n = product(batch_sizes), r = 1, c = 1;
    for (int label : rows) r *= joint(label);
    for (int label : columns) c *= joint(label);
    SymShape wide(t.sym_sizes());
    for (size_t i = 0; i < all.size(); ++i)
      if (has(order, all[i])) wide[i] = joint(all[i]);
    return t.expand(wide).reshape({n, r, c});
  };
  if (precedes(right, left, output)) {
    std::swap(a, b);
    std::swap(left, right);
    std::swap(left_sizes, right_sizes);
  }
  Tensor product_matrix = matrix(a, left, summed).bmm(matrix(b, summed, right));
  SymShape sizes = batch_sizes;
  for (SymInt s : left_sizes) sizes.push_back(s);
  for (SymInt s : right_sizes) sizes.push_back(s);
  Labels labels = batch;
  labels.insert(labels.end(), left.begin(), left.end());
  labels.insert(labels.end(), right.begin(), right.end());
  return {product_matrix.reshape(sizes), labels};
}

/// One tensor: the dimensions of the output in its order, and the others, behind them, summed.
Tensor summed_alone(const Operand& o, const Labels& output) {
  Labels order = output, rest;
  for (int label : o.labels)
    if (!has(output, label)) rest.push_back(label);
  std::sort(rest.begin(), rest.end());
  order.insert(order.end(), rest.begin(), rest.end());
  Tensor t = arranged(o, order);
  std::vector<int64_t> dims;
  for (size_t d = output.size(); d < order.size(); ++d) dims.push_back(static_cast<int64_t>(d));
  return dims.empty() ? t : t.sum(IntArrayRef(dims));
}

Tensor run_einsum(const std::string& equation, TensorList tensors) {
  size_t arrow = equation.find("->");
  std::vector<std::string> inputs = split_inputs(equation.substr(0, arrow));
  check(!tensors.empty(), "einsum(): must provide at least one operand");
  check(tensors.size() >= inputs.size(), "einsum(): fewer operands were provided than specified in the equation");
  check(tensors.size() == inputs.size(), "einsum(): more operands were provided than specified in the equation");

  std::vector<int64_t> covered;
  int64_t most_covered = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    read_labels(inputs[i], i, 0, 0);  // refuses what is no letter
    bool dots = inputs[i].find("...") != std::string::npos;
    int64_t letters = letters_in(inputs[i]), rank = tensors[i].dim();
    check(dots ? letters <= rank : letters == rank, "einsum(): the number of subscripts in the equation (", letters,
          ") ", dots ? "is more than the number of dimensions (" : "does not match the number of dimensions (", rank,
          ") for operand ", i, dots ? "" : " and no ellipsis was given");
    covered.push_back(dots ? rank - letters : 0);
    most_covered = std::max(most_covered, covered.back());
  }
  std::vector<Labels> labels;
  std::vector<Operand> operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    labels.push_back(read_labels(inputs[i], i, covered[i], most_covered));
    operands.push_back(without_repeats({tensors[i], labels.back()}));
  }
  Labels output = arrow == std::string::npos
                      ? implied_output(labels, most_covered)
                      : read_labels(equation.substr(arrow + 2), inputs.size(), most_covered, most_covered);
  for (size_t i = 0; i < output.size(); ++i) {
    check(std::count(output.begin(), output.end(), output[i]) == 1, "einsum(): output subscript ",
          static_cast<char>(output[i]), " appears more than once in the output");
    check(output[i] >= kEllipsis ||
              std::any_of(operands.begin(), operands.end(), [&](const Operand& o) { return has(o.labels, output[i]); }),
          "einsum(): output subscript ", static_cast<char>(output[i]),
          " does not appear in the equation for any input operand");
  }

  if (operands.size() == 1) return summed_alone(operands[0], output);
  Operand result = in_output_order(operands[0], output);
  for (size_t i = 1; i < operands.size(); ++i)
    result = contract(in_output_order(result, output), in_output_order(operands[i], output), output, [&](int label) {
      if (has(output, label)) return true;
      for (size_t later = i + 1; later < operands.size(); ++later)
        if (has(operands[later].labels, label)) return true;
      return false;
    });
  return arranged(sum_away(std::move(result), [&](int label) { return has(output, label); }), output);
}

UMBRA_OPERATOR("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor")
    .composite([](const std::string& equation, TensorList tensors, std::optional<std::vector<int64_t>> path) {
      (void)path;  // an advice about the order, which changes no result
      return run_einsum(equation, tensors);
    });

}  // namespace
}  // namespace umbra::ops
