#include "serve/http/http_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "serve/http/connection.h"
#include "serve/http/peer_name.h"

namespace sluice::serve::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kSocketBuffer = 32 << 10;  // bytes; the kernel takes twice as many

int spare_descriptor() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

void ServerShared::add(const std::shared_ptr<Connection>& connection) {
  const std::lock_guard lock(mutex);
  connections.emplace(connection.get(), connection);
}

void ServerShared::remove(Connection* connection) {
  const std::lock_guard lock(mutex);
  connections.erase(connection);
}

class HttpServer::Impl : public std::enable_shared_from_this<HttpServer::Impl> {
 public:
  Impl(Application& application, const HttpLimits& limits, std::string name)
      : shared_(std::make_shared<ServerShared>(application, limits, std::move(name))),
        guard_(asio::make_work_guard(io_)),
        listening_(io_),
        backoff_(io_),
        spare_(spare_descriptor()) {}
  ~Impl() {
    if (spare_ >= 0) ::close(spare_);
  }

  void start(int listening_socket, unsigned threads) {
    fcntl(listening_socket, F_SETFL, fcntl(listening_socket, F_GETFL) | O_NONBLOCK);
    listening_.assign(listening_socket);
    wait();
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { io_.run(); });
  }

  void stop_accepting() {
    asio::post(io_, [self = shared_from_this()] { self->close_listening(); });
  }

  void stop() {
    if (threads_.empty()) return;
    asio::post(io_, [self = shared_from_this()] {
      self->stopped_ = true;
      self->close_listening();
      self->shut_connections();
    });
    guard_.reset();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  void post(std::function<void()> work) { asio::post(io_, std::move(work)); }
  const HttpCounters& counters() const { return shared_->counters; }
  std::shared_ptr<Room> answers_room() const { return {shared_, &shared_->answers}; }
  void set_make_room(std::function<bool()> make_room) { shared_->make_room = std::move(make_room); }

 private:
  void close_listening() {
    const std::lock_guard lock(mutex_);
    backoff_.cancel();
    error_code ignored;
    if (listening_.is_open()) listening_.close(ignored);
  }

  void shut_connections() {
    std::vector<std::shared_ptr<Connection>> open;
    {
      const std::lock_guard lock(shared_->mutex);
      for (const auto& entry : shared_->connections)
        if (auto connection = entry.second.lock()) open.push_back(std::move(connection));
    }
    for (const auto& connection : open) connection->shut();
  }

  void wait() {
    const std::lock_guard lock(mutex_);
    if (!listening_.is_open()) return;
    listening_.async_wait(asio::posix::stream_descriptor::wait_read, [this](error_code error) {
      if (!error) accept_all();
    });
  }

  // Takes all that wait. Without descriptors one is kept in reserve, by which one client is taken and sent
  // away; then it waits a little.
  void accept_all() {
    while (true) {
      sockaddr_storage address{};
      socklen_t length = sizeof(address);
      int descriptor = -1;
      {
        const std::lock_guard lock(mutex_);
        if (!listening_.is_open()) return;
        descriptor = accept4(listening_.native_handle(), reinterpret_cast<sockaddr*>(&address), &length,
                             SOCK_CLOEXEC | SOCK_NONBLOCK);
      }
      if (descriptor >= 0) {
        adopt(descriptor, address);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return wait();
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        return back_off();
      } else if (errno == EBADF || errno == EINVAL) {
        return;
      }
    }
  }

  void back_off() {
    if (spare_ >= 0) {
      ::close(spare_);
      const int descriptor = accept4(listening_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
      if (descriptor >= 0) ::close(descriptor);
      spare_ = spare_descriptor();
    }
    backoff_.expires_after(std::chrono::milliseconds(100));
    backoff_.async_wait([this](error_code error) {
      if (!error) accept_all();
    });
  }

  void adopt(int descriptor, const sockaddr_storage& address) {
    Connection::Socket socket(io_);
    error_code error;
    socket.assign(
        asio::generic::stream_protocol(address.ss_family, address.ss_family == AF_UNIX ? 0 : IPPROTO_TCP),
        descriptor, error);
    if (error) {
      ::close(descriptor);
      return;
    }
    no_delay(descriptor, address);
    for (const int buffer : {SO_SNDBUF, SO_RCVBUF})  // the kernel's memory counts, too
      setsockopt(descriptor, SOL_SOCKET, buffer, &kSocketBuffer, sizeof(kSocketBuffer));
    const bool full =
        shared_->counters.connections.load() >= static_cast<std::int64_t>(shared_->limits.connections);
    const auto connection = std::make_shared<Connection>(io_, std::move(socket), shared_, peer_name(address));
    shared_->add(connection);
    connection->start(full);
    if (stopped_) connection->shut();
  }

  asio::io_context io_;
  const std::shared_ptr<ServerShared> shared_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::mutex mutex_;  // protects the listening socket
  asio::posix::stream_descriptor listening_;
  asio::steady_timer backoff_;
  int spare_ = -1;
  std::atomic<bool> stopped_ = false;
  std::vector<std::thread> threads_;
};

HttpServer::HttpServer(Application& application, const HttpLimits& limits, std::string server_name)
    : impl_(std::make_shared<Impl>(application, limits, std::move(server_name))) {}

HttpServer::~HttpServer() { stop(); }

void HttpServer::start(int listening_socket, unsigned threads) { impl_->start(listening_socket, threads); }
void HttpServer::stop_accepting() { impl_->stop_accepting(); }
void HttpServer::stop() { impl_->stop(); }
void HttpServer::post(std::function<void()> work) { impl_->post(std::move(work)); }
const HttpCounters& HttpServer::counters() const { return impl_->counters(); }
std::shared_ptr<Room> HttpServer::answers_room() const { return impl_->answers_room(); }
void HttpServer::set_make_room(std::function<bool()> make_room) {
  impl_->set_make_room(std::move(make_room));
}

}  // namespace sluice::serve::http
