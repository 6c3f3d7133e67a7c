#include "store/local/local_environment.h"

#include <pwd.h>
#include <unistd.h>

namespace sluice::store {

std::string LocalEnvironment::first_of(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) continue;
    return found->second.starts_with("~/") ? home + found->second.substr(1) : found->second;
  }
  return "";
}

LocalEnvironment local_environment() {
  LocalEnvironment here;
  for (char** each = ::environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view text = *each;
    const std::size_t equals = text.find('=');
    if (equals != text.npos) here.variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  here.home = here.first_of({"HOME"});
  if (const passwd* const user = here.home.empty() ? ::getpwuid(::getuid()) : nullptr; user != nullptr)
    here.home = user->pw_dir;
  return here;
}

}  // namespace sluice::store
