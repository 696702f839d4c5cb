#include "export/dim_sizes.h"

#include <algorithm>

#include "sym/rename.h"
#include "sym/source_hash.h"
#include "umbra/sym/constraints.h"

namespace umbra {

namespace {

sym::SymbolOptions symbol_options(const Dim* dim) {
  sym::SymbolOptions options;
  options.policy = sym::Policy::Static;
  if (!dim || dim->hint() == Dim::Hint::Static) return options;
  options.policy = sym::Policy::Dynamic;
  if (dim->hint() == Dim::Hint::Named) {
    options.dim = dim->name();
    options.range = dim->range();
  }
  options.marked_dynamic = dim->hint() == Dim::Hint::Dynamic;
  return options;
}

void check_integer_fits(const std::string& path, const Value& v, const std::map<int64_t, Dim>& dims) {
  check<UserError>(v.is_int(), "dynamic_shapes names '", path, "', which is neither a tensor nor an integer");
  for (const auto& [position, dim] : dims)
    check<ValueError>(dim.hint() != Dim::Hint::Named,
                      "Unable to specify input integers as dynamic through named Dims. Please use Dim.AUTO/DYNAMIC "
                      "instead.");
}

// The root of a derived Dim in terms of the size that it was met in, for guards: `((L['x'].size()[0] - 1) // 2)`.
std::string root_text(const std::string& size, const Dim& dim) {
  std::string text = size;
  if (dim.offset() != 0) text = concat("(", text, dim.offset() > 0 ? " - " : " + ", std::abs(dim.offset()), ")");
  return dim.scale() == 1 ? text : concat("(", text, " // ", dim.scale(), ")");
}

}  // namespace

void DimSizes::read(const FlatInputs& flat) {
  check_fits(flat);
  for (size_t i = 0; i < flat.paths.size(); ++i) places_.emplace(flat.paths[i], i);
  find_own_sources(flat);
}

void DimSizes::check_fits(const FlatInputs& flat) const {
  for (const auto& [path, dims] : options_.dynamic_shapes) {
    auto found = std::find(flat.paths.begin(), flat.paths.end(), path);
    if (found == flat.paths.end()) {
      std::string names;
      for (const std::string& known : flat.paths) names += (names.empty() ? "" : ", ") + known;
      fail<UserError>("dynamic_shapes names '", path, "', which is no tensor among the inputs: ", names);
    }
    const Value& v = flat.values[static_cast<size_t>(found - flat.paths.begin())];
    if (!v.is_tensor()) {
      check_integer_fits(path, v, dims);
      continue;
    }
    for (const auto& [position, dim] : dims) wrap_dim(position, v.tensor_ref().dim());
  }
}

// Of the sizes that are a Dim itself the one whose symbol's name comes first gives the Dim's symbol its name.
void DimSizes::find_own_sources(const FlatInputs& flat) {
  auto name = [](const std::string& source) { return std::to_string(sym::source_number(source)); };
  for (size_t i = 0; i < flat.values.size(); ++i) {
    if (!flat.values[i].is_tensor()) continue;
    int64_t rank = flat.values[i].tensor_ref().dim();
    for (int64_t d = 0; d < rank; ++d) {
      const Dim* dim = find_dim(flat.paths[i], d, rank);
      if (!dim || dim->hint() != Dim::Hint::Named || dim->is_derived()) continue;
      std::string source = size_source(flat.paths[i], d), naming = naming_source(flat.paths[i], d);
      auto [at, added] = own_names_.emplace(dim->name(), naming);
      if (!added && name(naming) >= name(at->second)) continue;
      at->second = naming;
      own_sources_[dim->name()] = source;
    }
  }
}

const Dim* DimSizes::find_dim(const std::string& path, int64_t d, int64_t rank) const {
  auto shapes = options_.dynamic_shapes.find(path);
  if (shapes == options_.dynamic_shapes.end()) return nullptr;
  for (const auto& [position, dim] : shapes->second)
    if ((position < 0 ? position + rank : position) == d) return &dim;
  return nullptr;
}

std::string DimSizes::source_of(std::string path) const {
  auto other = options_.argument_sources.find(path.substr(0, path.find_first_of("[.")));
  if (other != options_.argument_sources.end()) path = other->second + path.substr(other->first.size());
  size_t end = path.find_first_of("[.");
  return "L['" + path.substr(0, end) + "']" + (end == std::string::npos ? "" : path.substr(end));
}

std::string DimSizes::size_source(const std::string& path, int64_t d) const {
  return source_of(path) + ".size()[" + std::to_string(d) + "]";
}

/// What a size's symbol is named after; an integer has no dimension.
std::string DimSizes::naming_source(const std::string& path, int64_t d) const {
  auto place = options_.flat_names ? places_.find(path) : places_.end();
  if (place == places_.end()) return d < 0 ? source_of(path) : size_source(path, d);
  std::string input = concat("L['flat_args'][", place->second, "]");
  return d < 0 ? input : concat(input, ".size()[", d, "]");
}

/// The environment names symbols after what guards call them; this is another name.
void DimSizes::name_after(SymInt size, const std::string& naming) {
  if (!options_.flat_names || !size.is_symbolic()) return;
  const sym::Expression* symbol = env_.expression(size);
  if (!symbol->is(sym::Kind::Symbol)) return;
  uint32_t number = sym::source_number(naming);
  while (!taken_.insert(number).second) ++number;
  sym::rename_symbol(env_, symbol, "s" + std::to_string(number));
}

SymInt DimSizes::size(const std::string& path, const Tensor& given, int64_t d) {
  return size_for(path, d, given.sizes()[d], find_dim(path, d, given.dim()));
}

SymInt DimSizes::size_for(const std::string& path, int64_t d, int64_t hint, const Dim* dim) {
  std::string text = size_source(path, d);
  if (!dim || dim->hint() != Dim::Hint::Named) {
    SymInt size = env_.create_symbol(hint, text, symbol_options(dim));
    name_after(size, naming_source(path, d));
    if (dim) hinted_.add(concat("inputs", source_of(path).substr(1), ".shape[", d, "]"), size, hint, *dim);
    return size;
  }
  SymInt root = root_of(*dim, text, hint, d);
  if (root.is_symbolic()) env_.add_use(env_.expression(root), {dim->text(), text, dim->scale(), dim->offset()});
  SymInt size = root * dim->scale() + dim->offset();
  if (dim->is_derived() && size.is_symbolic()) add_derived(text, *dim);
  if (size.hint() != hint) fail_unequal(text, hint, *dim, root);
  return size;
}

SymInt DimSizes::root_of(const Dim& dim, const std::string& size, int64_t hint, int64_t d) {
  if (auto found = roots_.find(dim.name()); found != roots_.end()) return found->second;
  check<UserError>((hint - dim.offset()) % dim.scale() == 0, "Expected shape[", d, "] = ", hint,
                   " of input Tensor to be of the form ", dim.text(), ", where ", dim.name(), " is an integer");
  auto own = own_sources_.find(dim.name());
  bool has_own = own != own_sources_.end();
  SymInt root =
      env_.create_symbol((hint - dim.offset()) / dim.scale(), has_own ? own->second : "", symbol_options(&dim));
  if (has_own) name_after(root, own_names_.at(dim.name()));
  roots_.emplace(dim.name(), root);
  first_sizes_.emplace(dim.name(), size);
  if (!has_own && root.is_symbolic()) env_.add_source(env_.expression(root), root_text(size, dim));
  return root;
}

void DimSizes::fail_unequal(const std::string& size, int64_t hint, const Dim& dim, SymInt root) const {
  if (dim.is_derived())
    fail<UserError>("Expected input ", size, " to be equal to ", dim.text(), ", where ", dim.name(), " = ", root.hint(),
                    ", but got ", hint);
  fail<UserError>(size, " = ", hint, " is not equal to ", root.is_symbolic() ? first_sizes_.at(dim.name()) : dim.name(),
                  " = ", root.hint());
}

// A size that is no symbol by itself has a range of its own, and inputs are checked to be of its form.
void DimSizes::add_derived(const std::string& size, const Dim& dim) {
  const std::string& root = env_.symbol(env_.expression(roots_.at(dim.name()))).sources.front();
  std::string form = root;
  if (dim.scale() != 1) form = concat(dim.scale(), "*", form);
  if (dim.offset() > 0) form = concat("(", dim.offset(), " + ", form, ")");
  if (dim.offset() < 0) form = concat("((", dim.offset(), ") + ", form, ")");
  if (dim.scale() != 1 || root != root_text(size, dim)) derived_guards_.push_back(size + " == " + form);
}

SymInt DimSizes::integer(const std::string& path, int64_t given) {
  const Dim* dim = find_dim(path, 0, 1);
  sym::SymbolOptions options = symbol_options(dim);
  options.size = false;
  options.keep_zero_one = true;
  SymInt number = env_.create_symbol(given, source_of(path), options);
  name_after(number, naming_source(path, -1));
  if (dim && number.is_symbolic()) hinted_.add("inputs" + source_of(path).substr(1), number, given, *dim);
  return number;
}

bool DimSizes::is_promised(SymInt size, sym::Range range) const {
  const sym::Expression* e = size.is_symbolic() ? env_.expression(size) : nullptr;
  return e && e->is(sym::Kind::Symbol) && !env_.symbol(e).dim.empty() && env_.symbol(e).promised == range;
}

void DimSizes::declare_again(const Tensor& fake, const std::string& path) {
  for (int64_t d = 0; d < fake.dim(); ++d) {
    const Dim* dim = find_dim(path, d, fake.dim());
    if (!dim || dim->hint() == Dim::Hint::Static || dim->hint() == Dim::Hint::Auto) continue;
    SymInt size = fake.sym_sizes()[d];
    bool named = dim->hint() == Dim::Hint::Named, other = named && !dim->is_derived() && !roots_.contains(dim->name());
    if (!named && size.is_symbolic()) continue;
    if (other && is_promised(size, dim->range())) {  // by another name
      roots_.emplace(dim->name(), size);
      continue;
    }
    sym_compare(SymOp::Eq, size, size_for(path, d, size.is_symbolic() ? size.hint() : size.value(), dim)).guard_bool();
  }
}

std::vector<std::string> DimSizes::guards() const {
  std::vector<std::string> all = derived_guards_;
  for (auto& texts : {env_.guard_texts(), env_.assumption_texts()}) all.insert(all.end(), texts.begin(), texts.end());
  for (std::string& guard : all) guard = by_argument_names(std::move(guard));
  return all;
}

// A program's own arguments are those that it is called with: "L['xs'][0]" of `*xs` is L['xs_0'].
std::string DimSizes::by_argument_names(std::string guard) const {
  for (const auto& [name, source] : options_.argument_sources) {
    std::string place = source_of(name);
    for (size_t at; (at = guard.find(place)) != std::string::npos;)
      guard.replace(at, place.size(), "L['" + name + "']");
  }
  return guard;
}

sym::Range DimSizes::declared_range(const sym::Symbol& symbol) const {
  bool hidden = !symbol.dim.empty() && !own_sources_.contains(symbol.dim);
  return hidden ? symbol.range : sym::exported_range(symbol);
}

}  // namespace umbra
