#include "serve/server/server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "serve/http/http_server.h"
#include "serve/masks_room.h"
#include "serve/server/gate.h"

namespace sluice::serve {
namespace {

http::Listening listening_of(const ServerOptions& options) {
  if (options.inherited) return *options.inherited;
  if (!options.unix_path.empty()) return http::listen_on_path(options.unix_path);
  return http::listen_on(options.host, options.port);
}

void check_options(const ServerOptions& options) {
  const bool any = std::ranges::find(options.cors_origins, "*") != options.cors_origins.end();
  if (any && options.api_keys.empty())
    throw Error(ErrorKind::kUsage, "every site may read the answers, and no key is needed")
        .in(Setting::kCorsOrigin)
        .fix("give a key by " + Setting::kApiKey + ", or name the sites");
  const bool local = options.inherited ? options.inherited->loopback || options.inherited->unix_path
                                       : !options.unix_path.empty() || http::is_loopback_host(options.host);
  if (!local && options.api_keys.empty() && !options.no_auth)
    throw Error(ErrorKind::kUsage, "others can reach this address, and no key is needed")
        .in(Setting::kHost)
        .found(options.host)
        .fix("give a key by " + Setting::kApiKey + " or " + Setting::kApiKeyFile + ", or say " +
             Setting::kNoAuth);
}

unsigned threads_of(const ServerOptions& options) {
  constexpr unsigned kManyCpus = 8;
  if (options.threads > 0) return options.threads;
  return std::thread::hardware_concurrency() >= kManyCpus ? 2 : 1;
}

}  // namespace

class Server::Impl {
 public:
  Impl(Backend& backend, ServerOptions options)
      : options_(checked(std::move(options))),
        listening_(listening_of(options_)),
        gate_(backend, options_, listening_),
        http_(gate_, options_.limits, "sluice/" SLUICE_VERSION) {
    gate_.service().http_counts = [this] {
      return std::pair(http_.counters().connections.load(), http_.counters().bytes_sent.load());
    };
    const std::shared_ptr<http::Room> room = http_.answers_room();
    const std::shared_ptr<EventQueues> queues = gate_.service().queues;
    queues->share([room](std::size_t bytes) { return room->take(bytes); },
                  [room](std::size_t bytes) { room->give(bytes); });
    // Weak: the queues hold the room of the server's connections, which would hold them.
    http_.set_make_room([all = std::weak_ptr(queues)] {
      const std::shared_ptr<EventQueues> queues = all.lock();
      return queues != nullptr && queues->make_room();
    });
  }

  void start() { http_.start(listening_.descriptor, threads_of(options_)); }
  void stop() {
    http_.stop();
    const bool own_path = !options_.inherited && !options_.unix_path.empty();
    if (own_path && !stopped_.exchange(true)) unlink(options_.unix_path.c_str());
  }

  bool drain(std::chrono::milliseconds most) {
    Service& service = gate_.service();
    service.backend.begin_drain();
    if (wait_for_answers(most)) return true;
    std::vector<std::shared_ptr<Answering>> left;
    {
      const std::lock_guard lock(service.mutex);
      for (const auto& entry : service.answering)
        if (auto answering = entry.second.lock()) left.push_back(std::move(answering));
    }
    for (const auto& answering : left) answering->interrupt();
    left.clear();
    wait_for_answers(std::chrono::seconds(2));  // until the errors are on their way
    return false;
  }

  const http::Listening& listening() const { return listening_; }

 private:
  static ServerOptions checked(ServerOptions options) {
    check_options(options);
    return options;
  }

  bool wait_for_answers(std::chrono::milliseconds most) {
    const auto end = std::chrono::steady_clock::now() + most;
    while (gate_.service().answers > 0) {
      if (std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

  const ServerOptions options_;
  const http::Listening listening_;
  Gate gate_;
  http::HttpServer http_;
  std::atomic<bool> stopped_ = false;
};

Server::Server(Backend& backend, ServerOptions options)
    : impl_(std::make_unique<Impl>(backend, std::move(options))) {}
Server::~Server() { stop(); }
void Server::start() { impl_->start(); }
bool Server::drain(std::chrono::milliseconds most) { return impl_->drain(most); }
void Server::stop() { impl_->stop(); }
const std::string& Server::address() const { return impl_->listening().address; }
std::uint16_t Server::port() const { return impl_->listening().port; }

http::HttpLimits serve_limits(std::size_t account) {
  http::HttpLimits limits;
  limits.room_bytes = account - masks_room(account);
  limits.body_bytes = std::min(limits.body_bytes, account / 2);
  limits.connections = std::min(limits.connections, account / 2 / http::kConnectionBytes);
  limits.unsent_bytes = std::min(limits.unsent_bytes, account / 4);
  return limits;
}

}  // namespace sluice::serve
