// What a directory holds.
#pragma once

#include <string>
#include <vector>

namespace sluice::store {

// Names of the entries of the directory `path`, ascending, without "." and "..". Error(kNotFound) if it is
// not there, (kInvalid) if it is no directory, (kIo).
std::vector<std::string> names_in(const std::string& path);

}  // namespace sluice::store
