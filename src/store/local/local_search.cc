#include "store/local/local_search.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "store/source/gguf_names.h"
#include "store/source/weight_files.h"

namespace sluice::store {
namespace {

constexpr Bytes kMostText = kMiB;
constexpr int kDepth = 3;  // folders of GGUF files below that of a repository
constexpr std::string_view kSafetensors = ".safetensors";

struct FolderCloser {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

FolderEntry entry_of(const std::string& folder, std::string name) {
  struct stat info {};
  FolderEntry entry{std::move(name), EntryKind::kLost, 0};
  if (::stat((folder + "/" + entry.name).c_str(), &info) != 0) return entry;
  entry.kind = S_ISREG(info.st_mode)   ? EntryKind::kFile
               : S_ISDIR(info.st_mode) ? EntryKind::kFolder
                                       : EntryKind::kOther;
  if (entry.kind == EntryKind::kFile) entry.bytes = static_cast<Bytes>(info.st_size);
  return entry;
}

std::string lost(const std::string& name) { return name + " is a link that leads nowhere"; }

// Which of these files below `path` a set of weights lacks.
std::string missing(const std::string& path, const std::vector<std::string>& wanted,
                    const std::vector<FolderEntry>& entries) {
  std::size_t lacking = 0;
  std::string first;
  for (const std::string& name : wanted) {
    if (name.find('/') != name.npos && is_there(path + "/" + name)) continue;
    const auto entry = std::ranges::find(entries, name, &FolderEntry::name);
    if (entry != entries.end() && entry->kind == EntryKind::kFile) continue;
    if (lacking++ == 0) first = entry == entries.end() ? name + " is missing" : lost(name);
  }
  return lacking < 2 ? first : fmt::format("{} ({} files in all)", first, lacking);
}

}  // namespace

void LocalSearch::begin(std::string_view program, std::string_view title) {
  program_ = program;
  title_ = title;
}

std::vector<FolderEntry> LocalSearch::entries(const std::string& path) {
  const std::unique_ptr<DIR, FolderCloser> folder(::opendir(path.c_str()));
  if (folder == nullptr) {
    if (errno != ENOENT) note(fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
    return {};
  }
  std::vector<FolderEntry> entries;
  while (const dirent* const each = ::readdir(folder.get())) {
    const std::string_view name = each->d_name;
    if (name == "." || name == "..") continue;
    if (entries.size() == limits_.of_folder || looked_at_ == limits_.in_all) {
      note(fmt::format("{} is not looked at to its end: {} entries are the most", path,
                       entries.size() == limits_.of_folder ? limits_.of_folder : limits_.in_all));
      break;
    }
    ++looked_at_;
    entries.push_back(entry_of(path, std::string(name)));
  }
  std::ranges::sort(entries, {}, &FolderEntry::name);
  return entries;
}

std::vector<std::string> LocalSearch::folders(const std::string& path) {
  std::vector<std::string> names;
  for (FolderEntry& entry : entries(path))
    if (entry.kind == EntryKind::kFolder) names.push_back(std::move(entry.name));
  return names;
}

std::string LocalSearch::text(const std::string& path) {
  if (!is_there(path)) return "";
  try {
    return read_text_file(path, kMostText);
  } catch (const Error& error) {
    note(error.what());
    return "";
  }
}

void LocalSearch::repository(const std::string& path, const std::string& name,
                             const std::string& repository) {
  const std::vector<FolderEntry> top = entries(path);
  add_safetensors(path, name, repository, top);
  std::vector<FolderEntry> files;
  for (const FolderEntry& entry : top) {
    if (entry.kind != EntryKind::kFolder) {
      files.push_back(entry);
      continue;
    }
    std::vector<FolderEntry> below = files_below(path, entry.name, kDepth);
    std::ranges::move(below, std::back_inserter(files));
  }
  add_gguf(path, name + "/", repository, files);
}

void LocalSearch::gguf_files(const std::string& path) { add_gguf(path, "", "", entries(path)); }

std::vector<FolderEntry> LocalSearch::files_below(const std::string& path, const std::string& relative,
                                                  int depth) {
  std::vector<FolderEntry> files;
  for (FolderEntry& entry : entries(path + "/" + relative)) {
    entry.name = relative + "/" + entry.name;
    if (entry.kind != EntryKind::kFolder) {
      files.push_back(std::move(entry));
    } else if (depth > 1) {
      std::vector<FolderEntry> below = files_below(path, entry.name, depth - 1);
      std::ranges::move(below, std::back_inserter(files));
    }
  }
  return files;
}

void LocalSearch::add_safetensors(const std::string& path, const std::string& name,
                                  const std::string& repository, const std::vector<FolderEntry>& entries) {
  std::vector<std::string> names;
  for (const FolderEntry& entry : entries)
    if (entry.name.ends_with(kSafetensors) && entry.kind != EntryKind::kFolder) names.push_back(entry.name);
  if (names.empty()) return;
  LocalModel model{.name = name,
                   .own_name = name,
                   .repository = repository,
                   .form = LocalForm::kSafetensors,
                   .path = path};
  try {
    const WeightSet set = select_weights(scan_directory(path, {}, Depth::kTop), OtherWeights::kIgnore);
    names = set.files;
    model.fault = missing(path, names, entries);
  } catch (const Error& error) {
    model.fault = missing(path, names, entries);
    if (model.fault.empty()) model.fault = error.message();
  }
  model.files = names.size();
  for (const FolderEntry& entry : entries)
    if (std::ranges::find(names, entry.name) != names.end()) model.bytes += entry.bytes;
  add(std::move(model));
}

void LocalSearch::add_gguf(const std::string& path, const std::string& prefix, const std::string& repository,
                           const std::vector<FolderEntry>& files) {
  std::vector<std::string> names;
  for (const FolderEntry& file : files)
    if (file.kind == EntryKind::kFile || file.kind == EntryKind::kLost) names.push_back(file.name);
  for (const GgufNames& gguf : gguf_models(names)) {
    LocalModel model{.name = prefix + gguf.first,
                     .own_name = prefix + gguf.first,
                     .repository = repository,
                     .form = LocalForm::kGguf,
                     .path = path + "/" + gguf.first,
                     .files = gguf.parts};
    model.fault = missing(path, gguf.files, files);
    if (model.fault.empty() && !gguf.whole())
      model.fault = fmt::format("{} of {} parts are missing", gguf.parts - gguf.files.size(), gguf.parts);
    for (const FolderEntry& file : files)
      if (std::ranges::find(gguf.files, file.name) != gguf.files.end()) model.bytes += file.bytes;
    add(std::move(model));
  }
}

void LocalSearch::add(LocalModel model) {
  model.program = program_;
  model.title = title_;
  found.models.push_back(std::move(model));
}

void LocalSearch::note(std::string text) { found.notes.push_back(std::move(text)); }

bool LocalSearch::first_time(const std::string& path, std::string_view way) {
  std::error_code ignored;
  const std::filesystem::path known = std::filesystem::weakly_canonical(path, ignored);
  return seen_.insert(fmt::format("{} {}", way, known.empty() ? path : known.string())).second;
}

}  // namespace sluice::store
