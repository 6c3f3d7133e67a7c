// Runs a script on a file system of its own: a small one, a full one, one that takes no writes.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "program.h"

namespace sluice::program {

// What the lines of `script` say, run by a shell for which the directory `place` is a new file system in
// memory, mounted with these options ("size=64k"); it ends with the script. Nothing where none can be
// mounted: a test then skips, with kNoDisks.
inline std::optional<Outcome> run_on_own_disk(const std::string& place, const std::string& options,
                                              const std::string& script) {
  constexpr int kNotMounted = 99;
  const std::string file = place + ".sh";
  std::filesystem::create_directory(place);
  std::ofstream(file) << "mount -t tmpfs -o " << options << " none '" << place << "' || exit " << kNotMounted
                      << "\n"
                      << script << "\n";
  const Outcome outcome = run_command("unshare -rm sh '" + file + "'");
  if (outcome.code == kNotMounted || outcome.err.starts_with("unshare")) return std::nullopt;
  return outcome;
}

inline constexpr const char* kNoDisks = "FILE SYSTEMS CANNOT BE MOUNTED HERE: this is not checked";

}  // namespace sluice::program
