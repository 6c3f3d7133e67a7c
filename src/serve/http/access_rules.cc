#include "serve/http/access_rules.h"

#include <arpa/inet.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <unistd.h>

#include <algorithm>

namespace sluice::serve::http {
namespace {

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// "[::1]:8080" is "::1", "Localhost:80" is "localhost".
std::string host_name(std::string_view authority) {
  if (authority.starts_with('[')) return lower_case(authority.substr(1, authority.find(']') - 1));
  return lower_case(authority.substr(0, authority.find(':')));
}

bool is_address(const std::string& host) {
  std::uint8_t bytes[16];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 || inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

bool is_own_address(const std::string& host) {  // an address of this machine's loopback
  return is_address(host) && (host == "::1" || host.starts_with("127."));
}

std::string machine_name() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? lower_case(name) : std::string();
}

std::array<std::uint8_t, 32> digest_of(std::string_view text) {
  std::array<std::uint8_t, 32> digest{};
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, text.size(), reinterpret_cast<const std::uint8_t*>(text.data()));
  sha256_digest(&context, digest.size(), digest.data());
  return digest;
}

std::string_view given_key(const Request& request) {
  if (const std::string* bearer = request.header("authorization")) {
    constexpr std::string_view kScheme = "bearer ";
    if (lower_case(std::string_view(*bearer).substr(0, kScheme.size())) == kScheme) {
      std::string_view key = std::string_view(*bearer).substr(kScheme.size());
      while (key.starts_with(' ')) key.remove_prefix(1);
      return key;
    }
  }
  const std::string* key = request.header("x-api-key");
  return key == nullptr ? std::string_view() : std::string_view(*key);
}

}  // namespace

AccessRules::AccessRules(AccessOptions options) : options_(std::move(options)), machine_(machine_name()) {
  for (const std::string& key : options_.api_keys) digests_.push_back(digest_of(key));
}

bool AccessRules::host_allowed(std::string_view authority) const {
  const std::string host = host_name(authority);
  if (host == "localhost" || host.ends_with(".localhost") || is_own_address(host)) return true;
  for (const std::string& allowed : options_.allowed_hosts)
    if (host == lower_case(allowed)) return true;
  return !options_.loopback && (is_address(host) || (!machine_.empty() && host == machine_));
}

bool AccessRules::origin_listed(std::string_view origin) const {
  for (const std::string& listed : options_.cors_origins)
    if (origin == listed || (listed == "*" && needs_key())) return true;
  return false;
}

AccessRules::Verdict AccessRules::judge(const Request& request) const {
  if (request.count("host") != 1) return Verdict::kNoHost;
  const std::string& host = request.authority.empty() ? *request.header("host") : request.authority;
  if (host.empty()) return Verdict::kNoHost;
  if (options_.check_host && !(host_allowed(host) && host_allowed(*request.header("host"))))
    return Verdict::kHostRefused;
  const std::string* origin = request.header("origin");
  if (origin == nullptr) {
    const std::string* site = request.header("sec-fetch-site");
    return site != nullptr && *site == "cross-site" ? Verdict::kOriginRefused : Verdict::kFine;
  }
  const bool own = *origin == "http://" + host || *origin == "https://" + host;
  return own || origin_listed(*origin) ? Verdict::kFine : Verdict::kOriginRefused;
}

// Every key is compared, whichever is right, so that the time tells nothing.
bool AccessRules::has_key(const Request& request) const {
  if (digests_.empty()) return true;
  const Digest given = digest_of(given_key(request));
  int right = 0;
  for (const Digest& digest : digests_) right |= memeql_sec(given.data(), digest.data(), digest.size());
  return right != 0;
}

Headers AccessRules::cors_headers(const Request& request) const {
  if (options_.cors_origins.empty()) return {};
  const std::string* origin = request.header("origin");
  if (origin == nullptr || !origin_listed(*origin)) return {{"Vary", "Origin"}};
  return {{"Access-Control-Allow-Origin", *origin},
          {"Vary", "Origin"},
          {"Access-Control-Expose-Headers", "x-request-id, request-id, Retry-After"}};
}

Headers AccessRules::preflight_headers(const Request& request) const {
  const std::string* origin = request.header("origin");
  if (origin == nullptr || !origin_listed(*origin)) return {};
  return {{"Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS"},
          {"Access-Control-Allow-Headers", "authorization, content-type, x-api-key"},
          {"Access-Control-Max-Age", "600"}};
}

}  // namespace sluice::serve::http
