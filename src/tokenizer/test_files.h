// Files for the tokenizer tests: files of tests/data, unpacked, and golden files.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/json/json.h"
#include "tokenizer/tokenizer.h"

namespace sluice::tokenizer::test {

std::string source_path(const std::string& relative);  // in the source tree
std::string unpack_zstd(const std::string& relative);  // content of a .zst of the source tree
Json golden(const std::string& name);                  // tests/golden/tokenizers/NAME.json.zst

// A directory that is removed with this object.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string write(const std::string& name, std::string_view content) const;  // returns the path
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The tokenizer that a golden file describes, loaded from files as a user would load it.
std::unique_ptr<Tokenizer> load_golden_tokenizer(const std::string& name);
// Writes vocab.json and merges.txt of Qwen1.5-MoE, which equal those of Qwen3's tokenizer.json.
void write_qwen2_files(const TemporaryDirectory& directory);

}  // namespace sluice::tokenizer::test
