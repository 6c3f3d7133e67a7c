// How an Error names settings. Its parts, where(), message() and so on, hold marks of settings (setting.h);
// what() shows them by their flags.
#pragma once

#include <string>

#include "base/error.h"
#include "base/setting.h"

namespace sluice {

// As what(), with other names: for a server's client, or from another table.
std::string error_text(const Error& error, NamedBy by, const SettingNames& names = setting_names());

}  // namespace sluice
