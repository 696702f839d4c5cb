#include "aot/disk_cache.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "aot/graph_bytes.h"

namespace umbra::aot {

namespace {

constexpr std::string_view kMagic = "umbra graphs 2\n";
constexpr uintmax_t kLargest = uintmax_t{1} << 30;

struct State {
  std::mutex mutex;
  std::string directory;
  DiskCacheInfo counts;
  State() {
    if (const char* given = std::getenv("UMBRA_CACHE_DIR")) directory = given;
  }
};
State& state() {
  static State* s = new State;  // used by threads that may outlive static objects
  return *s;
}

template <class Change> void count(Change change) {
  std::lock_guard lock(state().mutex);
  change(state().counts);
}

uint64_t hash_of(std::string_view bytes, uint64_t seed) {
  uint64_t hash = seed ^ bytes.size();
  while (!bytes.empty()) {
    uint64_t word = 0;
    size_t taken = std::min<size_t>(8, bytes.size());
    std::memcpy(&word, bytes.data(), taken);
    bytes.remove_prefix(taken);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

std::filesystem::path path_of(const std::string& key) {
  char name[40];
  std::snprintf(name, sizeof(name), "%016llx%016llx.graphs", static_cast<unsigned long long>(hash_of(key, 1)),
                static_cast<unsigned long long>(hash_of(key, 2)));
  return std::filesystem::path(cache_directory()) / name;
}

std::optional<std::string> read_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kLargest) return std::nullopt;
  std::string bytes(size, '\0');
  std::ifstream in(path, std::ios::binary);
  if (!in.read(bytes.data(), static_cast<std::streamsize>(size))) return std::nullopt;
  return bytes;
}

/// Whole or not at all: a file of another name is written first, and renamed.
bool write_file(const std::filesystem::path& path, const std::string& bytes) {
  static std::atomic<uint64_t> number{0};
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  std::filesystem::path unfinished = path;
  unfinished += concat(".", ::getpid(), ".", number++, ".tmp");
  {
    std::ofstream out(unfinished, std::ios::binary);
    if (!out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())) || !out.flush()) {
      out.close();
      std::filesystem::remove(unfinished, error);
      return false;
    }
  }
  std::filesystem::rename(unfinished, path, error);
  if (error) std::filesystem::remove(unfinished, error);
  return !error;
}

void write(ByteWriter& out, const JointGraph& joint, const Partition& partition) {
  for (size_t n : {joint.primals, joint.tangents, joint.intermediates, joint.tokens, joint.backward_tokens})
    out.number<uint32_t>(static_cast<uint32_t>(n));
  out.number<uint8_t>(joint.differentiable);
  for (const std::vector<size_t>* list : {&joint.updated, &joint.written_in_graph, &joint.results, &joint.changed,
                                          &joint.written_by_backward, &joint.tangent_outputs})
    out.indices(*list);
  for (const TensorSpec& spec : joint.tangent_specs) out.spec(spec);
  out.number<uint32_t>(static_cast<uint32_t>(partition.saved_numbers));
  out.number<uint32_t>(static_cast<uint32_t>(partition.saved.size()));
  for (const std::string& name : partition.saved) out.text(name);
  out.number<int64_t>(partition.saved_bytes);
  for (const IntrusivePtr<fx::GraphModule>& module : {partition.forward, partition.backward}) {
    if (module) out.module(*module);
  }
}

void write(ByteWriter& out, const std::vector<const sym::Expression*>& conditions) {
  out.number<uint32_t>(static_cast<uint32_t>(conditions.size()));
  for (const sym::Expression* condition : conditions) out.expression(condition);
}

/// What tracing has found out about sizes beyond what the analysis had: each holds for this call too, whose numbers are
/// the same, and other calls have to keep it.
void read_conditions(ByteReader& in, sym::ShapeEnv* env) {
  for (size_t n = in.count(4); n > 0; --n)
    check<ValueError>(env->guard_bool(in.expression()), "a stored graph is damaged: a guard does not hold");
  for (size_t n = in.count(4); n > 0; --n) env->rely_on(in.expression());
}

IntrusivePtr<fx::GraphModule> read_graph(ByteReader& in, FakeModeImpl& mode, size_t inputs, size_t outputs) {
  IntrusivePtr<fx::GraphModule> module = in.module(mode);
  check<ValueError>(module->graph().placeholders().size() == inputs && module->graph().outputs().size() == outputs,
                    "a stored graph is damaged: it has other inputs or outputs");
  return module;
}

StoredGraphs read(ByteReader& in, const CallInfo& info) {
  StoredGraphs out;
  JointGraph& joint = out.joint;
  joint.primals = in.number<uint32_t>();
  joint.tangents = in.count(1);
  joint.intermediates = in.number<uint32_t>();
  joint.tokens = in.number<uint32_t>();
  joint.backward_tokens = in.number<uint32_t>();
  joint.differentiable = in.number<uint8_t>() != 0;
  joint.updated = in.indices(info.primals.size());
  joint.written_in_graph = in.indices(info.primals.size());
  joint.results = in.indices(info.outputs.size());
  joint.changed = in.indices(info.changes.size());
  joint.written_by_backward = in.indices(info.primals.size());
  joint.tangent_outputs = in.indices(joint.forward_outputs());
  for (size_t i = 0; i < joint.tangents; ++i) joint.tangent_specs.push_back(in.spec());
  check<ValueError>(joint.primals == info.primals.size() && joint.intermediates == info.intermediates.size() &&
                        joint.tokens == info.has_effects && joint.backward_tokens <= 1 &&
                        joint.tangent_outputs.size() == joint.tangents,
                    "a stored graph is damaged: it is for other calls");
  Partition& parts = out.partition;
  parts.forward_outputs = joint.forward_outputs();
  parts.saved_numbers = in.number<uint32_t>();
  parts.saved.resize(in.count(4));
  for (std::string& name : parts.saved) name = in.text();
  parts.saved_bytes = in.number<int64_t>();
  size_t saved = parts.saved.size(), later = joint.written_by_backward.size();
  size_t first = joint.tokens, last = joint.backward_tokens;
  parts.forward = read_graph(in, *info.mode, first + joint.primals, first + joint.forward_outputs() + saved);
  if (joint.differentiable)
    parts.backward = read_graph(in, *info.mode, saved + joint.tangents + later + last, joint.primals + later + last);
  check<ValueError>(parts.saved_numbers <= saved, "a stored graph is damaged: it saves more numbers than values");
  read_conditions(in, info.mode->shape_env());
  check<ValueError>(in.done(), "a stored graph is damaged: it goes on after its end");
  return out;
}

}  // namespace

std::string cache_directory() {
  std::lock_guard lock(state().mutex);
  return state().directory;
}

void set_cache_directory(std::string directory) {
  std::lock_guard lock(state().mutex);
  state().directory = std::move(directory);
}

DiskCacheInfo disk_cache_info() {
  std::lock_guard lock(state().mutex);
  return state().counts;
}

FoundConditions FoundConditions::since(const sym::ShapeEnv* env, size_t guards, size_t assumptions) {
  FoundConditions out;
  if (!env) return out;
  for (size_t i = guards; i < env->guards().size(); ++i) out.guards.push_back(env->guards()[i].condition);
  for (size_t i = assumptions; i < env->assumptions().size(); ++i)
    out.assumptions.push_back(env->assumptions()[i].condition);
  return out;
}

void note_bypass(const std::string& why) {
  count([&](DiskCacheInfo& c) { ++c.bypassed[why]; });
}

std::string library_identity() {
  Dl_info found;
  struct stat status = {};
  if (dladdr(reinterpret_cast<const void*>(&library_identity), &found) && found.dli_fname)
    stat(found.dli_fname, &status);
  return concat(kMagic, status.st_size, " ", status.st_mtim.tv_sec, ".", status.st_mtim.tv_nsec);
}

std::optional<StoredGraphs> load_graphs(const std::string& key, const CallInfo& info) {
  std::optional<std::string> bytes = read_file(path_of(key));
  if (!bytes) {
    count([](DiskCacheInfo& c) { ++c.misses; });
    return std::nullopt;
  }
  try {
    check<ValueError>(bytes->starts_with(kMagic), "no file of graphs");
    ByteReader in(std::string_view(*bytes).substr(kMagic.size()), info.mode->shape_env());
    uint64_t sum = in.number<uint64_t>();
    check<ValueError>(hash_of(std::string_view(*bytes).substr(kMagic.size() + sizeof(sum)), 3) == sum, "damaged");
    check<ValueError>(in.text() == key, "another key");
    StoredGraphs found = read(in, info);
    count([](DiskCacheInfo& c) { ++c.hits; });
    return found;
  } catch (const Error&) {
    count([](DiskCacheInfo& c) { ++c.damaged, ++c.misses; });
    return std::nullopt;
  }
}

void store_graphs(const std::string& key, const JointGraph& joint, const Partition& partition,
                  const FoundConditions& found) {
  ByteWriter payload;
  try {
    payload.text(key);
    write(payload, joint, partition);
    write(payload, found.guards);
    write(payload, found.assumptions);
  } catch (const NotStorable& reason) {
    return note_bypass(reason.why);
  }
  ByteWriter file;
  file.bytes() = kMagic;
  file.number<uint64_t>(hash_of(payload.bytes(), 3));
  file.bytes() += payload.bytes();
  // A folder that cannot be written is no reason to fail: what was compiled works.
  if (write_file(path_of(key), file.bytes())) count([](DiskCacheInfo& c) { ++c.stored; });
  else note_bypass("the folder cannot be written");
}

}  // namespace umbra::aot
