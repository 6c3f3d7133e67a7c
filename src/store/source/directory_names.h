// Lists a directory.
#pragma once

#include <string>
#include <vector>

namespace sluice::store {

// Names of the entries of the directory `path`, ascending, without "." and "..". Error(kNotFound) if it does
// not exist, (kInvalid) if it is not a directory, (kIo).
std::vector<std::string> names_in(const std::string& path);

}  // namespace sluice::store
