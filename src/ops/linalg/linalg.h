// What the operators on matrices share: checks in PyTorch's words, layouts of results, small pieces of formulas.
#pragma once

#include <string>

#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

/// At least two dimensions.
void check_matrix(const Tensor& a, const std::string& name, const char* argument = "A");
/// A batch of square matrices.
void check_square(const Tensor& a, const std::string& name, const char* argument = "A");
/// Floating point or complex; without `narrow`, not float16 or bfloat16.
void check_floating_matrix(const Tensor& a, const std::string& name, bool narrow = true);
/// That A X = B (or X A = B) has matching sizes.
void check_system(const Tensor& a, const Tensor& b, bool left, const std::string& name);
/// The older functions' check of A X = b: types, a square A, matching sizes.
void check_older_system(const Tensor& b, const Tensor& a, const std::string& name);
/// Throws what PyTorch says about the first matrix whose `info` (int32) is not 0. Looks at data; a fake run has none.
void check_infos(const Tensor& info, const std::string& name, bool is_matrix);
/// That an output is where the input is and can hold what has its type.
void check_result_fits(const char* name, const Tensor& input, const Tensor& out, const char* result = "result",
                       DType type = DType::Undefined);

/// The batch sizes: all but the last two.
SymShape batch_part(const Tensor& a);
/// Sizes of matrices in that batch.
SymShape matrix_sizes(SymIntArrayRef batch, SymInt rows, SymInt columns);
/// The batch sizes that both broadcast to.
SymShape common_batch(const Tensor& a, const Tensor& b);
/// Matrices that lie column after column, as LAPACK leaves them.
TensorSpec column_major_spec(SymIntArrayRef sizes, DType dtype, Device device);
/// An output that this call does not compute: no elements.
TensorSpec absent_spec(const Tensor& like);
/// Vectors of a batch of matrices: pivots, eigenvalues.
TensorSpec vector_spec(const Tensor& a, SymInt length, DType dtype);
/// One element a matrix.
TensorSpec scalar_spec(const Tensor& a, DType dtype);

/// The conjugate transpose.
Tensor adjoint_of(const Tensor& a);
/// Matrices with these diagonals.
Tensor diagonal_matrix(const Tensor& diagonal);
/// Whether a derivative of the tensor may be asked for, as far as its layers tell.
bool may_be_differentiated(const Tensor& a);
/// Whether `b` is a batch of vectors rather than of matrices, next to the matrices `a`.
bool is_vector_side(const Tensor& a, const Tensor& b);
/// Whether the tensor has elements to look at: not fake, not meta, no wrapper of a transform or a capture.
bool has_plain_data(const Tensor& a);
/// Wraps a list of dimensions; IndexError outside the rank.
std::vector<int64_t> wrap_dims(const std::vector<int64_t>& dims, int64_t rank);

}  // namespace umbra::ops
