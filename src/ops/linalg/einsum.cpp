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
// `number` says which operand it is; the output has none.
Labels read_labels(const std::string& text, std::optional<size_t> number, int64_t covered, int64_t most_covered) {
  Labels labels;
  bool dots = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ' ') continue;
    if (c == '.') {
      std::string what =
          number ? concat("einsum(): found '.' for operand ", *number) : "einsum(): found '.' for output";
      check(!dots, what,
            number ? " for which an ellipsis was already found" : " but an ellipsis (...) was already found");
      check(text.compare(i, 3, "...") == 0, what, " that is not part of any ellipsis", number ? "" : " (...)");
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
Operand without_repeats(Operand o, size_t number) {
  for (size_t i = 0; i < o.labels.size(); ++i)
    for (size_t j = i + 1; j < o.labels.size();) {
      if (o.labels[i] != o.labels[j]) {
        ++j;
        continue;
      }
      int64_t first = static_cast<int64_t>(i), second = static_cast<int64_t>(j);
      SymInt a = o.tensor.sym_size(first), b = o.tensor.sym_size(second);
      check(expect_equal(a, b), "einsum(): subscript ", static_cast<char>(o.labels[i]), " is repeated for operand ",
            number, " but the sizes don't match, ", b, " != ", a);
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

/// The order of dimensions that all tensors are brought to: those of the output, then those that are summed over.
struct Dimensions {
  Labels labels;
  size_t kept;  // how many of them the output has

  Dimensions(const Labels& output, const std::vector<Operand>& operands) : labels(output), kept(output.size()) {
    Labels rest;
    for (const Operand& o : operands)
      for (int label : o.labels)
        if (!has(output, label) && !has(rest, label)) rest.push_back(label);
    std::ranges::sort(rest, {}, [](int label) { return label >= kEllipsis ? label - 2 * kEllipsis : label; });
    labels.insert(labels.end(), rest.begin(), rest.end());
  }
};

std::string name_of(int label) { return label >= kEllipsis ? "..." : std::string(1, static_cast<char>(label)); }

bool is_one(SymInt size) { return equal_or(size, 1, false); }  // a size that only the run tells is taken not to be one
bool is_one(const Tensor& t, size_t dimension) { return is_one(t.sym_size(static_cast<int64_t>(dimension))); }

/// A dimension has one size in all tensors that have it, or size 1 in some of them, which broadcasts.
void check_sizes(const std::vector<Operand>& operands) {
  std::map<int, SymInt> seen;
  for (size_t number = 0; number < operands.size(); ++number)
    for (size_t d = 0; d < operands[number].labels.size(); ++d) {
      int label = operands[number].labels[d];
      SymInt size = operands[number].tensor.sym_size(static_cast<int64_t>(d));
      auto [before, is_new] = seen.try_emplace(label, size);
      if (is_new || is_one(size)) continue;
      check(is_one(before->second) || expect_equal(before->second, size), "einsum(): subscript ", name_of(label),
            " has size ", size, " for operand ", number, " which does not broadcast with previously seen size ",
            before->second);
      before->second = size;
    }
}

/// The tensor with all dimensions, in their order; size 1 where it does not have one.
Tensor arranged(const Operand& o, const Dimensions& dimensions) {
  Tensor t = o.tensor;
  std::vector<int64_t> order;
  for (int label : dimensions.labels) {
    if (auto at = std::ranges::find(o.labels, label); at != o.labels.end()) {
      order.push_back(at - o.labels.begin());
    } else {
      order.push_back(t.dim());
      t = t.unsqueeze(t.dim());
    }
  }
  return t.permute(order);
}

using Places = std::vector<int64_t>;

/// What each dimension is in the product of two tensors: of both, of one of them, or summed over. A dimension of size 1
/// in both counts as the right one's.
struct Roles {
  Places batch, left, right, summed;

  Roles(const Tensor& a, const Tensor& b, const Places& sum) : summed(sum) {
    for (int64_t d = 0; d < a.dim(); ++d) {
      if (std::ranges::find(sum, d) != sum.end()) continue;
      bool in_a = !is_one(a, static_cast<size_t>(d)), in_b = !is_one(b, static_cast<size_t>(d));
      (in_a && in_b ? batch : in_a ? left : right).push_back(d);
    }
  }
  /// The right one's dimensions come before the left one's in the output: the matrices are better swapped.
  bool reversed() const { return !left.empty() && !right.empty() && right.back() < left.front(); }
};

Places joined(std::initializer_list<Places> parts) {
  Places all;
  for (const Places& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

SymInt product_of(const Tensor& t, const Places& dims) {
  SymInt product = 1;
  for (int64_t d : dims) product *= t.sym_size(d);
  return product;
}

/// The product of two tensors, summed over some dimensions, which stay with size 1: [batch, left, sum] x [batch, sum,
/// right].
Tensor matrix_product(Tensor a, Tensor b, const Places& sum) {
  Roles roles(a, b, sum);
  if (roles.reversed()) {
    std::swap(a, b);
    roles = Roles(a, b, sum);
  }
  const auto& [batch, left, right, summed] = roles;
  SymInt n = product_of(a, batch), inner = product_of(a, summed);
  Tensor rows = a.permute(joined({batch, left, summed, right})).reshape({n, product_of(a, left), inner});
  Tensor columns = b.permute(joined({batch, summed, right, left})).reshape({n, inner, product_of(b, right)});
  Tensor product = rows.bmm(columns);

  Places order = joined({batch, left, summed, right}), back(order.size());
  SymShape sizes;
  for (size_t i = 0; i < order.size(); ++i) {
    bool is_summed = std::ranges::find(summed, order[i]) != summed.end();
    sizes.push_back(is_summed ? SymInt(1) : (i < batch.size() + left.size() ? a : b).sym_size(order[i]));
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return product.reshape(sizes).permute(back);
}

/// Multiplies tensors two at a time. `waiting[d]`: how many of them still have more than one element along d, which is
/// to be summed over; with the last two of them, it is.
class Contraction {
 public:
  Contraction(std::vector<Tensor> tensors, const Dimensions& dimensions)
      : tensors_(std::move(tensors)), kept_(dimensions.kept), waiting_(dimensions.labels.size()) {
    for (size_t d = kept_; d < waiting_.size(); ++d)
      for (const Tensor& t : tensors_) waiting_[d] += !is_one(t, d);
  }

  bool done() const { return tensors_.size() == 1; }
  const Tensor& result() const { return tensors_[0]; }

  /// The first two; their product takes the first one's place.
  void next() {
    tensors_[0] = product(tensors_[0], tensors_[1]);
    tensors_.erase(tensors_.begin() + 1);
  }
  /// Two that a path names; their product goes to the end.
  void next(int64_t i, int64_t j) {
    if (j < i) std::swap(i, j);
    check(i != j && i >= 0 && j < static_cast<int64_t>(tensors_.size()),
          "einsum(): expected operands in contraction path to be valid indices, but got ", i, ", ", j);
    tensors_.push_back(product(tensors_[static_cast<size_t>(i)], tensors_[static_cast<size_t>(j)]));
    tensors_.erase(tensors_.begin() + j);
    tensors_.erase(tensors_.begin() + i);
  }

 private:
  Tensor product(Tensor a, Tensor b) {
    Places of_a, of_b, of_both;
    for (size_t d = kept_; d < waiting_.size(); ++d) {
      bool in_a = !is_one(a, d), in_b = !is_one(b, d);
      if (in_a && in_b) --waiting_[d];
      if (waiting_[d] != 1 || !(in_a || in_b)) continue;
      (in_a && in_b ? of_both : in_a ? of_a : of_b).push_back(static_cast<int64_t>(d));
      waiting_[d] = 0;
    }
    if (!of_a.empty()) a = a.sum(IntArrayRef(of_a), /*keepdim=*/true);
    if (!of_b.empty()) b = b.sum(IntArrayRef(of_b), /*keepdim=*/true);
    return of_both.empty() ? a.mul(b) : matrix_product(a, b, of_both);
  }

  std::vector<Tensor> tensors_;
  size_t kept_;
  std::vector<int> waiting_;
};

/// Without the dimensions that were summed over.
Tensor without_summed(const Tensor& t, const Dimensions& dimensions, bool has_size_one) {
  if (dimensions.kept == dimensions.labels.size()) return t;
  if (has_size_one) return t.reshape(SymShape(t.sym_sizes().begin(), t.sym_sizes().begin() + dimensions.kept));
  Places dims;
  for (size_t d = dimensions.kept; d < dimensions.labels.size(); ++d) dims.push_back(static_cast<int64_t>(d));
  return t.sum(IntArrayRef(dims));
}

Labels read_output(const std::string& equation, size_t arrow, const std::vector<Labels>& inputs, int64_t covered) {
  if (arrow == std::string::npos) return implied_output(inputs, covered);
  Labels output = read_labels(equation.substr(arrow + 2), std::nullopt, covered, covered);
  for (int label : output) {
    check(std::ranges::count(output, label) == 1, "einsum(): output subscript ", name_of(label),
          " appears more than once in the output");
    check(label >= kEllipsis || std::ranges::any_of(inputs, [&](const Labels& labels) { return has(labels, label); }),
          "einsum(): output subscript ", name_of(label), " does not appear in the equation for any input operand");
  }
  return output;
}

/// How many dimensions "..." stands for in each input.
std::vector<int64_t> read_covered(const std::vector<std::string>& inputs, TensorList tensors) {
  std::vector<int64_t> covered;
  for (size_t i = 0; i < inputs.size(); ++i) {
    read_labels(inputs[i], i, 0, 0);  // refuses what is no letter
    bool dots = inputs[i].find("...") != std::string::npos;
    int64_t letters = letters_in(inputs[i]), rank = tensors[i].dim();
    check(dots ? letters <= rank : letters == rank, "einsum(): the number of subscripts in the equation (", letters,
          ") ", dots ? "is more than the number of dimensions (" : "does not match the number of dimensions (", rank,
          ") for operand ", i, dots ? "" : " and no ellipsis was given");
    covered.push_back(dots ? rank - letters : 0);
  }
  return covered;
}

Tensor run_einsum(const std::string& equation, TensorList tensors, const std::optional<std::vector<int64_t>>& path) {
  size_t arrow = equation.find("->");
  std::vector<std::string> inputs = split_inputs(equation.substr(0, arrow));
  check(!tensors.empty(), "einsum(): must provide at least one operand");
  check(tensors.size() >= inputs.size(), "einsum(): fewer operands were provided than specified in the equation");
  check(tensors.size() == inputs.size(), "einsum(): more operands were provided than specified in the equation");
  size_t steps = tensors.size() == 1 ? 1 : 2 * (tensors.size() - 1);
  check(!path || path->size() == steps, "einsum(): expected contraction path given in path parameter to have size ",
        steps, " but got ", path ? path->size() : 0);

  std::vector<int64_t> covered = read_covered(inputs, tensors);
  int64_t most_covered = std::ranges::max(covered);
  std::vector<Labels> labels;
  std::vector<Operand> operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    labels.push_back(read_labels(inputs[i], i, covered[i], most_covered));
    operands.push_back(without_repeats({tensors[i], labels.back()}, i));
  }
  Dimensions dimensions(read_output(equation, arrow, labels, most_covered), operands);
  check_sizes(operands);
  std::vector<Tensor> parts;
  for (const Operand& o : operands) parts.push_back(arranged(o, dimensions));
  if (parts.size() == 1) return without_summed(parts[0], dimensions, /*has_size_one=*/false);

  Contraction contraction(std::move(parts), dimensions);
  for (size_t i = 0; !contraction.done(); i += 2) {
    if (path) contraction.next((*path)[i], (*path)[i + 1]);
    else contraction.next();
  }
  return without_summed(contraction.result(), dimensions, /*has_size_one=*/true);
}

UMBRA_OPERATOR("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor").composite(run_einsum);

}  // namespace
}  // namespace umbra::ops
