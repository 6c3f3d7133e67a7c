#include "command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <utility>

#include "base/shown_text.h"
#include "command.h"
#include "nearest.h"

namespace sluice::app {
namespace {

// The library's own, but an option's value is called by one word: no type of C++ and no list of its checks.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    const std::string type = option->get_type_name();
    const std::size_t at = type.empty() ? std::string::npos : text.find(type);
    if (at == std::string::npos) return text;
    std::string word = type.substr(0, type.find(':'));  // behind it: what its checks say of themselves
    if (word == "INT" || word == "UINT" || word == "FLOAT") word = "NUMBER";
    return text.replace(at, type.size(), word);
  }
};

// Declares one option for each kind of target.
struct AddOption {
  CLI::App& app;
  const std::string& names;
  const std::string& help;

  template <class Number>
  CLI::Option* operator()(Number* target) const {
    return app.add_option(names, *target, help);
  }
  CLI::Option* operator()(std::vector<std::string>* target) const {
    return app.add_option(names, *target, help)->allow_extra_args(false)->take_all();
  }
  CLI::Option* operator()(const std::function<void(const std::string&)>& target) const {
    return app.add_option_function<std::string>(names, target, help);
  }
};

}  // namespace

struct Flag::State {
  CLI::Option* option = nullptr;
};

Flag::Flag() : state_(std::make_unique<State>()) {}
Flag::~Flag() = default;

Flag* Flag::required() {
  state_->option->required();
  return this;
}

Flag* Flag::group(const std::string& title) {
  state_->option->group(title);
  return this;
}

Flag* Flag::type_name(const std::string& word) {
  state_->option->type_name(word);
  return this;
}

Flag* Flag::check(FlagCheck check) {
  const auto checked = [check = std::move(check)](const std::string& text) {
    check(text);  // its error leaves the library as it is and ends in main()
    return std::string();
  };
  state_->option->check(CLI::Validator(checked, ""));
  return this;
}

Flag* Flag::one_of(std::vector<std::string> names) {
  state_->option->check(CLI::IsMember(std::move(names)));
  return this;
}

Flag* Flag::show_default() {
  state_->option->capture_default_str();
  return this;
}

bool Flag::given() const { return state_->option->count() > 0; }

struct Command::State {
  CLI::App* app = nullptr;
  std::unique_ptr<CLI::App> program;  // in the program's Command alone
  std::vector<std::unique_ptr<Command>> commands;
  std::vector<std::unique_ptr<Flag>> flags;
};

Command::Command(std::unique_ptr<State> state) : state_(std::move(state)) {}
Command::~Command() = default;

Command::Command(const std::string& name, const std::string& summary) : state_(std::make_unique<State>()) {
  state_->program = std::make_unique<CLI::App>(summary, name);
  state_->app = state_->program.get();
  state_->app->require_subcommand(1);
  state_->app->formatter(std::make_shared<HelpFormatter>());  // commands inherit it
}

Command* Command::add_command(const std::string& name, const std::string& summary) {
  auto state = std::make_unique<State>();
  state->app = state_->app->add_subcommand(name, summary);
  return state_->commands.emplace_back(new Command(std::move(state))).get();
}

Command* Command::add_choice(const std::string& title) {
  auto state = std::make_unique<State>();
  CLI::Option_group* group = state_->app->add_option_group(title, "One of:");
  group->require_option(1);
  state->app = group;
  return state_->commands.emplace_back(new Command(std::move(state))).get();
}

Flag* Command::add_option(const std::string& names, FlagTarget target, const std::string& help) {
  Flag* flag = state_->flags.emplace_back(std::make_unique<Flag>()).get();
  flag->state_->option = std::visit(AddOption{*state_->app, names, help}, target);
  return flag;
}

Flag* Command::add_flag(const std::string& names, bool& target, const std::string& help) {
  Flag* flag = state_->flags.emplace_back(std::make_unique<Flag>()).get();
  flag->state_->option = state_->app->add_flag(names, target, help);
  return flag;
}

void Command::version(const std::string& text) { state_->app->set_version_flag("--version", text); }
void Command::footer(const std::string& text) { state_->app->footer(text); }
void Command::callback(std::function<void()> callback) { state_->app->callback(std::move(callback)); }
std::string Command::help() const { return state_->app->help(); }

std::vector<std::string> Command::command_names() const {
  std::vector<std::string> names;
  for (const CLI::App* command : state_->app->get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

namespace {

int wrong_usage(CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.back();
  std::string message = shown_text(error.what());
  // A misspelt flag is the likelier mistake than what its absence led to.
  for (const std::string& word : app.remaining(true)) {
    if (word.size() < 2 || word[0] != '-') continue;
    std::vector<std::string> flags;
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& name : option->get_lnames()) flags.push_back(fmt::format("--{}", name));
    }
    const std::string flag = word.substr(0, word.find('='));
    message = fmt::format("unknown flag {}{}", shown_text(flag), did_you_mean(flag, flags));
    break;
  }
  fmt::print(stderr, "sluice: {}\nsluice: `sluice {}--help` explains the usage\n", message,
             chosen.empty() ? "" : command.get_name() + " ");
  return kExitUsage;
}

}  // namespace

int Command::run(std::vector<std::string> words) {
  CLI::App& app = *state_->app;
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // the library takes them last first
    return 0;
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    return asked ? app.exit(error) : wrong_usage(app, error);  // --help and --version arrive here too
  }
}

}  // namespace sluice::app
