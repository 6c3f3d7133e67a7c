// Which path leads where: the one table of endpoints.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "serve/wire/service.h"

namespace sluice::serve {

struct Route {
  std::string_view method;  // "GET", which HEAD follows, or "POST"
  std::string_view path;    // without "/v1"; one that ends in "/*" takes any end that has no slash
  void (*answer)(const Call&);
  bool is_public = false;  // needs no key
  ErrorStyle style = ErrorStyle::kOpenAi;
  bool answers = false;  // by the model: what fails is counted by its reason
};

std::span<const Route> routes();

struct FoundRoute {
  const Route* route = nullptr;      // null: not with this method, or no such path
  std::string allow;                 // methods of the path; empty: there is no such path
  std::string argument;              // the end of the path
  std::string_view label = "other";  // for metrics
  ErrorStyle style = ErrorStyle::kOpenAi;
};
FoundRoute find_route(std::string_view method, std::string_view path);

}  // namespace sluice::serve
