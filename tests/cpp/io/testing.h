// What the tests of io/ share: a folder of their own, the model files of PyTorch where they are at hand.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "error_of.h"
#include "umbra/core/tensor.h"
#include "umbra/io/file.h"

namespace umbra::io {

/// A fresh folder that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "umbra_io_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  size_t count() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

/// The folder of model files written by PyTorch, or "" where this checkout has none beside it.
inline std::string models_folder() {
  for (const char* place : {"../shared/models", "../../shared/models"})
    if (std::filesystem::exists(std::string(place) + "/bad/manifest.json")) return place;
  return "";
}

#define UMBRA_NEEDS_MODELS(name)      \
  std::string name = models_folder(); \
  if (name.empty()) GTEST_SKIP() << "no folder of model files beside the checkout"

/// 0, 1, 2, ... as floats.
inline Tensor arange(int64_t count) {
  Tensor tensor = allocate_tensor({count}, {1}, DType::Float32, Device());
  for (int64_t i = 0; i < count; ++i) tensor.data<float>()[i] = static_cast<float>(i);
  return tensor;
}

}  // namespace umbra::io
