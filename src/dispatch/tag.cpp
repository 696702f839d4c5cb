#include "umbra/dispatch/tag.h"

#include <iterator>

namespace umbra {

namespace {
constexpr const char* kNames[] = {"core",
                                  "cudagraph_unsafe",
                                  "data_dependent_output",
                                  "dynamic_output_shape",
                                  "flexible_layout",
                                  "generated",
                                  "inplace",
                                  "inplace_view",
                                  "maybe_aliasing_or_mutating",
                                  "needs_contiguous_strides",
                                  "needs_exact_strides",
                                  "needs_fixed_stride_order",
                                  "nondeterministic_bitwise",
                                  "nondeterministic_seeded",
                                  "out",
                                  "out_variant",
                                  "pointwise",
                                  "pt2_compliant_tag",
                                  "reduction",
                                  "view_copy"};
static_assert(std::size(kNames) == kTorchTagCount);
}  // namespace

const char* torch_name(Tag tag) {
  auto index = static_cast<size_t>(tag);
  return index < kTorchTagCount ? kNames[index] : nullptr;
}

std::optional<Tag> find_tag(std::string_view torch_name) {
  for (size_t i = 0; i < kTorchTagCount; ++i)
    if (kNames[i] == torch_name) return static_cast<Tag>(i);
  return std::nullopt;
}

}  // namespace umbra
