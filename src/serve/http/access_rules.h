// Who may ask: rules about the headers Host, Origin and Authorization.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/request.h"

namespace sluice::serve::http {

struct AccessOptions {
  std::vector<std::string> api_keys;       // none: everybody may
  std::vector<std::string> allowed_hosts;  // beyond those that are allowed anyway
  std::vector<std::string> cors_origins;   // exact, or "*", which counts only together with a key
  bool loopback = true;                    // listens for this machine alone
  bool check_host = true;                  // false on a path
};

// Immutable, thread-safe.
class AccessRules {
 public:
  enum class Verdict { kFine, kNoHost, kHostRefused, kOriginRefused };

  explicit AccessRules(AccessOptions options);

  // Host and Origin. A browser's page of another site is refused for every method.
  Verdict judge(const Request& request) const;
  bool needs_key() const { return !digests_.empty(); }
  bool has_key(const Request& request) const;  // a right one; true if none is needed
  // What a page of another site may read: headers for an answer to an allowed origin, else none.
  Headers cors_headers(const Request& request) const;
  Headers preflight_headers(const Request& request) const;

 private:
  using Digest = std::array<std::uint8_t, 32>;
  bool host_allowed(std::string_view host) const;
  bool origin_listed(std::string_view origin) const;

  const AccessOptions options_;
  const std::string machine_;  // in lower case
  std::vector<Digest> digests_;
};

}  // namespace sluice::serve::http
