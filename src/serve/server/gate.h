// Where requests come in: who may, and which endpoint answers.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http/access_rules.h"
#include "serve/http/application.h"
#include "serve/server/server_options.h"
#include "serve/server/site.h"
#include "serve/wire/answering.h"
#include "serve/wire/service.h"

namespace sluice::serve {

// Thread-safe.
class Gate final : public http::Application {
 public:
  Gate(Backend& backend, const ServerOptions& options, const http::Listening& listening);

  Service& service() { return service_; }
  std::optional<http::Response> on_head(http::Request& request) override;
  void on_request(std::shared_ptr<http::Writer> writer) override;
  http::Response on_fault(const http::Request* head, http::HttpFault fault, std::string_view text) override;
  void on_done(const http::Request& request, const http::AccessRecord& record) override;

 private:
  void check_head(http::Request& request) const;
  void check_route(const http::Request& request) const;
  void answer(const std::shared_ptr<http::Writer>& writer);
  bool is_page(std::string_view path) const { return service_.options.page && Site::is_path_of(path); }
  // A path that is not there is logged once, and then at each power of ten.
  bool worth_a_line(const http::Request& request, unsigned status);

  const ServerOptions& options_;
  const http::AccessRules rules_;
  const std::optional<Site> site_;
  Service service_;
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> missed_;  // by path
};

}  // namespace sluice::serve
