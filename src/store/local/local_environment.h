// What says where other programs keep their models.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

namespace sluice::store {

struct LocalEnvironment {
  std::map<std::string, std::string, std::less<>> variables;
  std::string home;                                  // the user's directory
  std::string ollama_service = "/usr/share/ollama";  // that of the user which Ollama's service runs as

  // The value of the first of these variables that is set and not empty, with "~/" at its beginning replaced;
  // else empty.
  std::string first_of(std::initializer_list<std::string_view> names) const;
};

// That of this process.
LocalEnvironment local_environment();

}  // namespace sluice::store
