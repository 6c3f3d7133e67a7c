// Lines that are edited on a terminal, by libedit.
#include <fcntl.h>
#include <histedit.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/shown_text.h"
#include "commands/chat/line_reader.h"
#include "streams/interrupt.h"
#include "streams/standard_error.h"

namespace sluice::app {
namespace {

constexpr int kHistoryLines = 1000;
// Ctrl-D ends the input at an empty line. Behind one that was typed before the terminal was set up, the
// editor itself takes it for a letter.
constexpr int kEndKey = 4;
constexpr int kSignalMs = 100;  // a signal just before poll() is seen at most so much later
// A terminal puts these around what is pasted, once it is asked to.
constexpr std::string_view kPastesOn = "\x1b[?2004h", kPastesOff = "\x1b[?2004l", kPasteEnd = "\x1b[201~";

void write_now(std::string_view text) { std::cout << text << std::flush; }

class EditedLines final : public LineReader {
 public:
  explicit EditedLines(std::string history_file) : history_file_(std::move(history_file)) {
    std::setlocale(LC_CTYPE, "C.UTF-8");
    editor_ = ::el_init("sluice", stdin, stdout, stderr);
    history_ = ::history_init();
    SLUICE_CHECK(editor_ != nullptr && history_ != nullptr, "no memory for line editing");
    HistEvent event;
    ::history(history_, &event, H_SETSIZE, kHistoryLines);
    ::history(history_, &event, H_SETUNIQUE, 1);
    ::el_set(editor_, EL_CLIENTDATA, this);
    ::el_set(editor_, EL_PROMPT, prompt_of);
    ::el_set(editor_, EL_EDITOR, "emacs");
    ::el_set(editor_, EL_HIST, ::history, history_);
    ::el_set(editor_, EL_GETCFN, next_character);
    // By wide names, which are kept as they are: of others the library makes copies that it never frees.
    ::el_wset(editor_, EL_ADDFN, L"sluice-paste", L"Takes what is pasted", take_paste);
    ::el_set(editor_, EL_BIND, "\x1b[200~", "sluice-paste", nullptr);
    ::el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    ::el_source(editor_, nullptr);  // the user's own keys
    load_history();
  }

  ~EditedLines() override {
    if (!history_file_.empty()) {
      HistEvent event;
      ::history(history_, &event, H_SAVE, history_file_.c_str());
    }
    ::history_end(history_);
    ::el_end(editor_);
  }

  ReadLine read(const std::string& prompt) override {
    prompt_ = prompt;
    pastes_.clear();
    stopped_ = false;
    ::el_set(editor_, EL_PREP_TERM, 1);  // before the prompt stands there: who sees it may type at once
    write_now(kPastesOn);
    int count = 0;
    const char* const typed = ::el_gets(editor_, &count);
    ReadLine line;
    if (typed == nullptr || count <= 0) {
      line.end = stopped_ ? LineEnd::kInterrupted : LineEnd::kEndOfInput;
      if (stopped_) {
        const LineInfo* const info = ::el_line(editor_);
        line.text.assign(info->buffer, info->lastchar);
        ::el_reset(editor_);
      }
      write_now(std::string(kPastesOff) + "\n");
      return line;
    }
    write_now(kPastesOff);
    line.text.assign(typed, static_cast<std::size_t>(count));
    while (line.text.ends_with('\n') || line.text.ends_with('\r')) line.text.pop_back();
    remember(line.text);
    line.text = with_pastes(std::move(line.text));
    return line;
  }

 private:
  static EditedLines& self(EditLine* editor) {
    void* data = nullptr;
    ::el_get(editor, EL_CLIENTDATA, &data);
    return *static_cast<EditedLines*>(data);
  }
  static char* prompt_of(EditLine* editor) { return self(editor).prompt_.data(); }

  // One byte of the terminal; -1 at its end, and when a signal asks to stop.
  int next_byte() {
    for (;;) {
      struct pollfd input = {STDIN_FILENO, POLLIN, 0};
      const int ready = ::poll(&input, 1, kSignalMs);
      if (interrupted()) {
        stopped_ = true;
        return -1;
      }
      follow_size();
      if (ready <= 0) continue;
      unsigned char byte = 0;
      const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
      if (count == 1) return byte;
      if (count == 0 || (errno != EINTR && errno != EAGAIN)) return -1;
    }
  }
  // The line is drawn for the width that the terminal has now.
  void follow_size() {
    struct winsize size {};
    if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == columns_) return;
    const bool first = columns_ == 0;  // as the editor was made for
    columns_ = size.ws_col;
    if (first) return;
    ::el_resize(editor_);
    ::el_set(editor_, EL_REFRESH);
  }
  static bool is_empty(EditLine* editor) {
    const LineInfo* const line = ::el_line(editor);
    return line->buffer == line->lastchar;
  }
  static int next_character(EditLine* editor, wchar_t* character) {
    std::mbstate_t state{};
    for (;;) {
      const int byte = self(editor).next_byte();
      if (byte < 0) return 0;
      if (byte == kEndKey && is_empty(editor)) return 0;
      const char one = static_cast<char>(byte);
      const std::size_t length = std::mbrtowc(character, &one, 1, &state);
      if (length == static_cast<std::size_t>(-2)) continue;
      if (length == static_cast<std::size_t>(-1)) *character = L'\xfffd';
      return 1;
    }
  }

  // A paste of several lines is kept aside; a mark stands for it in the line until it is sent.
  static unsigned char take_paste(EditLine* editor, int) {
    EditedLines& lines = self(editor);
    std::string pasted;
    while (!pasted.ends_with(kPasteEnd)) {
      const int byte = lines.next_byte();
      if (byte < 0) return CC_EOF;
      pasted += byte == '\r' ? '\n' : static_cast<char>(byte);
    }
    pasted.resize(pasted.size() - kPasteEnd.size());
    std::size_t count = 1;
    for (const char byte : pasted) count += byte == '\n' ? 1 : 0;
    if (count == 1) {
      ::el_insertstr(editor, pasted.c_str());
      return CC_REFRESH;
    }
    const std::string mark =
        "[paste " + std::to_string(lines.pastes_.size() + 1) + ": " + std::to_string(count) + " lines]";
    lines.pastes_.emplace_back(mark, std::move(pasted));
    ::el_insertstr(editor, mark.c_str());
    return CC_REFRESH;
  }
  std::string with_pastes(std::string line) const {
    std::size_t from = 0;
    for (const auto& [mark, pasted] : pastes_) {
      const std::size_t at = line.find(mark, from);
      if (at == std::string::npos) continue;  // the user has removed it
      line.replace(at, mark.size(), pasted);
      from = at + pasted.size();
    }
    return line;
  }

  void remember(const std::string& line) {
    if (line.empty() || line.front() == ' ' || line.front() == '\t') return;
    HistEvent event;
    ::history(history_, &event, H_ENTER, line.c_str());
  }

  // The file is made for this user alone, and left alone where it is another's.
  void load_history() {
    if (history_file_.empty()) return;
    namespace fs = std::filesystem;
    std::error_code failure;
    fs::create_directories(fs::path(history_file_).parent_path(), failure);
    const int file = ::open(history_file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat status = {};
    const bool ours = file >= 0 && ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                      status.st_uid == ::geteuid() && ::fchmod(file, 0600) == 0;
    if (file >= 0) ::close(file);
    if (!ours) {
      print_warning("{}: what is typed is not kept, because this file cannot be used",
                    shown_text(history_file_));
      history_file_.clear();
      return;
    }
    HistEvent event;
    ::history(history_, &event, H_LOAD, history_file_.c_str());  // an empty file is none
  }

  std::string history_file_, prompt_;
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
  std::vector<std::pair<std::string, std::string>> pastes_;  // this line's: the mark, and what it stands for
  bool stopped_ = false;
  unsigned short columns_ = 0;  // the terminal's, when it was last looked at; 0: not yet
};

}  // namespace

std::unique_ptr<LineReader> edited_lines(const std::string& history_file) {
  return std::make_unique<EditedLines>(history_file);
}

std::string usual_history_file() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && state[0] == '/') return std::string(state) + "/sluice/chat_history";
  const char* const home = std::getenv("HOME");
  return home == nullptr || home[0] != '/' ? "" : std::string(home) + "/.local/state/sluice/chat_history";
}

}  // namespace sluice::app
