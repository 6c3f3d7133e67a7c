#include "model/synth/synth_target.h"

#include <filesystem>
#include <system_error>

#include "base/compared_bytes.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/setting.h"

namespace sluice::model {

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

void check_target(const std::string& path, Bytes needed) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) throw name_is_taken(path);
  check_directory_of(path);
  const Bytes free = free_space(parent_of(path));
  if (free >= needed) return;
  const ComparedBytes sizes = compared_bytes(needed, free);
  throw Error(ErrorKind::kIo, "not enough free disk space")
      .in(parent_of(path))
      .expected(sizes.expected)
      .found(sizes.found)
      .fix("free some, or make the model smaller with " + Setting::kLayers + " or " + Setting::kExperts);
}

}  // namespace sluice::model
