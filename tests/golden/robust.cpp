// Robustness: a record's call with one thing made wrong (a type, a rank, an empty or expanded tensor, an index, a size)
// gives a result or one of Umbra's errors, with data and without. A crash is seen by the report, which runs records in
// child processes; memory is limited there, so that a size which runs away is an error too.
#include <random>

#include "levels.h"

namespace umbra::golden {
namespace {

constexpr int kCallsPerRecord = 4;
constexpr int64_t kExtremes[] = {
    -1, 0, -2, 1, 3, 7, -7, 100, int64_t{1} << 33, int64_t{1} << 40, int64_t{1} << 62, INT64_MAX, INT64_MIN};
constexpr DType kTypes[] = {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64, DType::Complex64,
                            DType::Int64,   DType::Int32,    DType::UInt8,   DType::Bool};

class Mutator {
 public:
  explicit Mutator(const std::string& seed) : random_(std::hash<std::string>()(seed)) {}

  void mutate(Json& record, std::vector<Tensor>& tensors) {
    std::vector<Json*> numbers;
    for (const char* part : {"args", "kwargs"})
      for (Json& argument : record[part]) collect(argument, numbers);
    if (!numbers.empty() && (tensors.empty() || below(3) == 0))
      *numbers[below(numbers.size())] = kExtremes[below(std::size(kExtremes))];
    else if (!tensors.empty()) change(tensors[below(tensors.size())]);
  }

 private:
  size_t below(size_t n) { return static_cast<size_t>(random_() % n); }

  /// The integers among the arguments; {"tensor": 0} and its like are none.
  static void collect(Json& value, std::vector<Json*>& out) {
    if (value.is_number_integer()) out.push_back(&value);
    if (value.is_array())
      for (Json& item : value) collect(item, out);
  }

  void change(Tensor& t) {
    int64_t dim = t.dim() ? static_cast<int64_t>(below(static_cast<size_t>(t.dim()))) : 0;
    bool has_elements = t.dim() > 0 && t.numel() > 0;
    switch (below(9)) {
      case 0: t = t.to(kTypes[below(std::size(kTypes))]); break;
      case 1: t = t.unsqueeze(dim); break;
      case 2:
        if (t.dim() > 0) t = t.narrow(dim, 0, 0);
        break;
      case 3:
        if (has_elements) t = t.narrow(dim, 0, 1);
        break;
      case 4:
        if (has_elements) t = t.narrow(dim, 0, 1).expand(t.sym_sizes());
        break;
      case 5:
        if (has_elements) t = t.select(dim, 0);
        break;
      case 6:
        if (t.dim() > 1) t = t.transpose(0, t.dim() - 1);
        break;
      case 7:
        if (has_elements) t = t.reshape({-1}).select(0, 0);
        break;
      default: write_extreme(t);
    }
  }

  void write_extreme(Tensor& t) {
    if (t.numel() == 0 || is_floating(t.dtype()) || is_complex(t.dtype())) return;
    t = t.clone(MemoryFormat::Contiguous);
    t.view({-1}).select(0, static_cast<int64_t>(below(static_cast<size_t>(t.numel())))).fill_(kExtremes[below(8)]);
  }

  std::mt19937_64 random_;
};

/// Any of Umbra's errors will do, and so will having no memory for what was asked.
template <class F> void expect_orderly(const char* what, const F& call) {
  try {
    call();
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {
  } catch (const std::exception& e) {
    throw Mismatch(concat(what, " raised ", typeid(e).name(), ": ", e.what()));
  }
}

}  // namespace

void make_wrong(const std::string& seed, Json& record, std::vector<Tensor>& tensors) {
  Mutator(seed).mutate(record, tensors);
}

bool check_robust(const Operator& op, const Group& group, const Json& record) {
  for (int i = 0; i < kCallsPerRecord; ++i) {
    std::string seed = concat(record["id"].get<std::string>(), i);
    Json changed = {{"args", record["args"]}, {"kwargs", record["kwargs"]}};
    std::vector<Tensor> tensors = build_tensors(group, record, true);
    make_wrong(seed, changed, tensors);
    FakeMode fake;
    std::vector<Tensor> fakes;
    for (const Tensor& t : tensors) fakes.push_back(fake.from_tensor(t));
    expect_orderly("the fake run", [&] {
      auto scope = fake.enter();
      op(build_arguments(op, changed, fakes));
    });
    expect_orderly("the run", [&] { op(build_arguments(op, changed, tensors)); });
  }
  return true;
}

}  // namespace umbra::golden
