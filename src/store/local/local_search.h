// What a search for models has found so far, and how much it may still look at.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "store/local/local_models.h"

namespace sluice::store {

// Links are followed.
enum class EntryKind {
  kFile,
  kFolder,
  kLost,  // a link that leads nowhere, or what may not be looked at
  kOther,
};

struct FolderEntry {
  std::string name;
  EntryKind kind = EntryKind::kOther;
  Bytes bytes = 0;  // a file's size
};

class LocalSearch {
 public:
  explicit LocalSearch(const LocalLimits& limits) : limits_(limits) {}

  // Whose models are found next.
  void begin(std::string_view program, std::string_view title);

  // The entries, ascending by name. None where there is no folder. A note says what could not be read.
  std::vector<FolderEntry> entries(const std::string& path);
  // Those that are folders, by name.
  std::vector<std::string> folders(const std::string& path);
  // Content of a small file; empty if there is none. A note says what could not be read.
  std::string text(const std::string& path);

  // The models that a folder with the files of one repository holds: its safetensors, as `name`, and GGUF
  // files below it, as `name`/FILE.
  void repository(const std::string& path, const std::string& name, const std::string& repository);
  // The GGUF files that lie in `path` itself, each under its own name.
  void gguf_files(const std::string& path);
  // With the program that begin() has said.
  void add(LocalModel model);
  void note(std::string text);
  // Whether nobody has asked for this folder before, by any name that it has, looked at in this way.
  bool first_time(const std::string& path, std::string_view way);

  LocalModels found;

 private:
  std::vector<FolderEntry> files_below(const std::string& path, const std::string& relative, int depth);
  void add_safetensors(const std::string& path, const std::string& name, const std::string& repository,
                       const std::vector<FolderEntry>& entries);
  void add_gguf(const std::string& path, const std::string& prefix, const std::string& repository,
                const std::vector<FolderEntry>& files);

  const LocalLimits limits_;
  std::size_t looked_at_ = 0;
  std::string_view program_, title_;
  std::set<std::string> seen_;
};

}  // namespace sluice::store
