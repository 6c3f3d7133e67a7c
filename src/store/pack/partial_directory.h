// A directory that appears whole or not at all: one process at a time fills it as TARGET.partial, then
// renames it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace sluice::store {

// Holds the lock from construction to destruction (or the end of the process). Neither copyable nor movable.
class PartialDirectory {
 public:
  // Creates `target`.partial or takes over an existing one. `is_ours` says which names may be at its top.
  // Error(kInvalid) if `target` exists, if another process works on the partial directory, or if it contains
  // other names.
  PartialDirectory(const std::string& target, const std::function<bool(std::string_view name)>& is_ours);
  PartialDirectory(const PartialDirectory&) = delete;
  PartialDirectory& operator=(const PartialDirectory&) = delete;
  ~PartialDirectory();

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  bool has(std::string_view name) const;
  bool empty() const;
  void clear(std::string_view first = {});  // removes its content, `first` before all else
  void discard();                           // clear(), and the directory itself
  // Removes entries at the top that are not in `names`: a killed run has left them.
  void remove_others(const std::vector<std::string>& names);
  // Renames to `target`, durably; removes `last` just before.
  void publish(std::string_view last = {});

 private:
  std::string target_, path_, parent_;
  int fd_ = -1;
};

// Error(kInvalid) if `target` exists or would lie inside the directory `source`; (kNotFound) if `source` or
// the parent of `target` does not exist.
void check_outside(const std::string& target, const std::string& source);

// Error(kIo) naming the directory unless its disk has room for this many bytes more.
void check_room(const std::string& directory, Bytes needed);

// Removes trailing slashes.
std::string without_slashes(std::string path);
std::string parent_directory(const std::string& path);

}  // namespace sluice::store
