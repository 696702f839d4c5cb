// umbra: exported programs from the command line.
//
//     umbra info mlp.pt2                     what it takes and gives, its weights, what it costs
//     umbra run mlp.pt2 --input x.npy        its outputs
//     umbra check *.pt2                      whether files are sound programs that this build can run
//
// `umbra --help` lists the commands, `umbra run --help` the options of one. The exit status is 0; 1 where the answer is
// no or a file cannot be used; 2 for a command line that is not understood.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>

#include "commands.h"
#include "estimate.h"
#include "files.h"

namespace {

constexpr int kUsage = 2;

/// How many letters have to be changed, added or left out to get from one word to another.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

/// CLI11's own says "not in range 0.000000 to" a number of three hundred digits.
std::string positive(const std::string& text) {
  double number = 0;
  bool fits = CLI::detail::lexical_cast(text, number) && number > 0;
  return fits ? "" : "expected a number above 0, got " + text;
}

std::string count(const std::string& text) {
  int number = 0;
  bool fits = CLI::detail::lexical_cast(text, number) && number > 0;
  return fits ? "" : "expected a whole number above 0, got " + text;
}

std::string distance(const std::string& text) {
  double number = 0;
  bool fits = CLI::detail::lexical_cast(text, number) && number >= 0;
  return fits ? "" : "expected a number, 0 or above, got " + text;
}

/// What is wrong with the first option that the command does not have, or with a file too many where inputs have an
/// option; nothing where all are its own.
std::string unknown_option(const CLI::App& command) {
  for (const std::string& word : command.remaining()) {
    if (!word.starts_with("-")) {
      bool takes_inputs = command.get_option_no_throw("--input") != nullptr;
      if (takes_inputs) return "'" + word + "' is one file too many: inputs are given with --input";
      continue;
    }
    std::string text = "there is no option '" + word + "'", nearest;
    for (const CLI::Option* option : command.get_options())
      for (const std::string& name : option->get_lnames())
        if (nearest.empty() || edit_distance(word, "--" + name) < edit_distance(word, nearest)) nearest = "--" + name;
    return edit_distance(word, nearest) <= 2 ? text + "; did you mean '" + nearest + "'?" : text;
  }
  return "";
}

class Program {
 public:
  Program() {
    app_.set_version_flag("--version", "umbra " UMBRA_VERSION);
    app_.require_subcommand(1);
    app_.footer(
        "Examples:\n"
        "  umbra info mlp.pt2\n"
        "  umbra view mlp.pt2\n"
        "  umbra run mlp.pt2 --input x.npy --output y.npy\n"
        "  umbra run mlp.pt2 --example --repeat 100 --profile\n"
        "  umbra convert weights.pt weights.safetensors\n"
        "  umbra diff before.pt2 after.pt2\n"
        "  source <(umbra completion bash)");
    app_.failure_message([](const CLI::App* app, const CLI::Error& error) {
      std::string command = app->get_name(), wrong = app->get_subcommands().empty() ? unknown_option(*app) : "";
      for (const CLI::App* given : app->get_subcommands()) {
        command += " " + given->get_name();
        if (wrong.empty()) wrong = unknown_option(*given);
      }
      return "umbra: " + (wrong.empty() ? error.what() : wrong) + "\n`" + command +
             " --help` shows how it is called.\n";
    });
    add_looks();
    add_run();
    add_train();
    add_changes();
    add_examples();
  }

  int main(int argc, char** argv) {
    if (argc == 1) {
      std::fputs(app_.help().c_str(), stderr);
      return kUsage;
    }
    if (std::string_view(argv[1]) == "help") return help(argc > 2 ? argv[2] : "");
    if (argv[1][0] != '-' && !actions_.count(argv[1])) return unknown(argv[1]);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
      return app_.exit(e) == 0 ? 0 : kUsage;
    }
    try {
      int status = actions_.at(app_.get_subcommands().at(0)->get_name())();
      umbra::detail::check(std::fflush(stdout) == 0 && !std::ferror(stdout), "cannot write to standard output");
      return status;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "umbra: %s\n", e.what());
      return 1;
    }
  }

 private:
  CLI::App* add(const std::string& name, const std::string& what, std::function<int()> action) {
    actions_.emplace(name, std::move(action));
    return app_.add_subcommand(name, what);
  }

  void add_looks() {
    using namespace umbra::cli;
    add("info", "what a program takes and gives, the ranges of its sizes, its weights and what it costs",
        [this] { return info(path_); })
        ->add_option("file", path_, "a .pt2 file")
        ->required();
    CLI::App* shown = add("show", "print a program: code, signature, ranges", [this] { return show(path_, graph_); });
    shown->add_option("file", path_, "a .pt2 file")->required();
    shown->add_flag("--graph", graph_, "its nodes instead, as torch.fx lists them");
    add("weights", "list the tensors of a file", [this] { return weights(path_); })
        ->add_option("file", path_, "a .pt2, .safetensors, .pt, .npz or .npy file")
        ->required();
    add("check", "say of each file whether it is a sound program that this build can run",
        [this] { return check_files(paths_); })
        ->add_option("files", paths_, ".pt2 files")
        ->required();
    CLI::App* costs = add("estimate", "say what a call of a program costs, from a run without data", [this] {
      if (!costs_.plot.empty()) check_place(costs_.plot);
      umbra::estimate_program(load_program(path_), path_, costs_);
      return 0;
    });
    costs->add_option("file", path_, "a .pt2 file")->required();
    costs->add_option("--size", costs_.sizes,
                      "a dynamic size, as NAME=NUMBER, or its NUMBER where there is one alone (`umbra info` lists "
                      "them); if it is not "
                      "given, the example's or the least possible");
    costs->add_flag("--training", costs_.training, "with a backward pass");
    costs->add_option("--plot", costs_.plot, "write a page with a plot of memory over time");
    CLI::App* page =
        add("view", "show a program in the browser: its graph by modules, with shapes, costs and lines", [this] {
          view_.path = path_;
          return view(view_);
        });
    page->add_option("file", path_, "a .pt2 file")->required();
    page->add_option("--output,-o", view_.output, "write the page to this file, and do not open it");
    page->add_flag("--no-open", view_.no_open, "write the page and say where it is");
    page->add_option("--size", view_.sizes, "a dynamic size to tell costs for, as NAME=NUMBER, or its NUMBER alone");
    CLI::App* operators = add("operators", "list the operators of this build",
                              [this] { return facts_ ? list_facts(text_) : list_operators(text_); });
    operators->add_option("text", text_, "only those whose name contains this");
    operators->add_flag("--facts", facts_, "in columns: base of a variant, schema, what its definition has");
  }

  void add_run() {
    CLI::App* run = add("run", "run a program", [this] {
      run_.path = path_;
      return umbra::cli::run(run_);
    });
    run->add_option("file", path_, "a .pt2 file")->required();
    CLI::Option* inputs = run->add_option("--input,-i", run_.inputs,
                                          "inputs in order: .npy files, files of several tensors (.npz, .safetensors, "
                                          ".pt), and numbers");
    run->add_flag("--example", run_.example, "run it with the inputs that it was saved with")->excludes(inputs);
    CLI::Option* check = run->add_option("--check", run_.expected,
                                         "compare its outputs with those in a file, where they are o0, o1, ...");
    run->add_option("--tolerance", run_.tolerance, "how far outputs may be off, relative to 1 + |expected|")
        ->check(distance)
        ->needs(check)
        ->capture_default_str();
    run->add_option("--output,-o", run_.output, "write its outputs, as o0, o1, ..., to a file");
    run->add_option("--repeat", run_.repeat, "run it this many times, and say how long that takes")
        ->check(count)
        ->capture_default_str();
    run->add_flag("--profile", run_.profile, "say where the time goes, by operators");
  }

  void add_train() {
    CLI::App* train =
        add("train", "train a program for some steps: an example of what can be done with a file", [this] {
          train_.path = path_;
          return umbra::cli::train(train_);
        });
    train->add_option("file", path_, "a .pt2 file")->required();
    CLI::Option* inputs = train->add_option("--input,-i", train_.inputs, "inputs in order, as for run");
    train->add_flag("--example", train_.example, "the inputs that it was saved with")->excludes(inputs);
    train->add_option("--target,-t", train_.target, "a file with what its first result should be")->required();
    train->add_option("--loss", train_.loss, "what is made small")
        ->check(CLI::IsMember({"mse", "l1", "cross_entropy"}))
        ->capture_default_str();
    train->add_option("--optimizer", train_.optimizer, "what changes the parameters")
        ->check(CLI::IsMember({"sgd", "adamw"}))
        ->capture_default_str();
    train->add_option("--lr", train_.rate, "the learning rate")->check(positive)->capture_default_str();
    train->add_option("--steps", train_.steps, "how many steps")->check(count)->capture_default_str();
    train->add_option("--output,-o", train_.output, "write the trained program to this .pt2 file");
  }

  void add_changes() {
    using namespace umbra::cli;
    CLI::App* parts = add("decompose", "write a program without writes, in terms of fewer operators",
                          [this] { return decompose_file(path_, other_, keep_); });
    add_pair(parts, "a .pt2 file", "the .pt2 file to write");
    parts->add_flag("--keep-composites", keep_, "take writes out, and leave operators made of others whole");
    add_pair(add("diff", "what differs between two programs, or between the tensors of two files",
                 [this] { return diff(path_, other_); }),
             "a file", "another file");
    CLI::App* converted = add("convert", "write the tensors of a file to one of another kind, or a program anew",
                              [this] { return convert(path_, other_, paths_); });
    add_pair(converted, "a .pt2, .safetensors, .pt, .npz or .npy file",
             "the file to write: .safetensors, .pt, .npz, .npy, .pt2 or .onnx");
    converted->add_option("--input,-i", paths_,
                          "examples of the inputs of a TorchScript file that becomes a .pt2 file: files of tensors, or "
                          "looks such as float32[batch=2,3,224,224], where a size with a name may be another");
    add("completion", "print a script that completes commands", [this] { return completion(text_, command_words()); })
        ->add_option("shell", text_, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  }

  void add_examples() {
    const std::map<std::string, const char*> examples = {
        {"info", "umbra info mlp.pt2"},
        {"show", "umbra show mlp.pt2\n  umbra show --graph mlp.pt2"},
        {"view", "umbra view mlp.pt2\n  umbra view mlp.pt2 --size 64 --output mlp.html"},
        {"weights", "umbra weights mlp.pt2\n  umbra weights model.safetensors"},
        {"check", "umbra check *.pt2"},
        {"estimate", "umbra estimate mlp.pt2 --size 64 --training --plot memory.html"},
        {"operators", "umbra operators softmax"},
        {"run",
         "umbra run mlp.pt2 --input x.npy 3 --output y.safetensors\n"
         "  umbra run mlp.pt2 --input inputs.safetensors --check expected.safetensors\n"
         "  umbra run mlp.pt2 --example --repeat 100 --profile"},
        {"train", "umbra train mlp.pt2 --input x.npy --target y.npy --steps 100 --lr 0.1 --output trained.pt2"},
        {"decompose", "umbra decompose mlp.pt2 core.pt2"},
        {"diff", "umbra diff before.pt2 after.pt2\n  umbra diff weights.pt weights.safetensors"},
        {"convert",
         "umbra convert mlp.pt2 weights.safetensors\n  umbra convert weights.pt weights.npz\n"
         "  umbra convert model.pt model.pt2 --input 'float32[batch=2,3,224,224]'"},
        {"completion", "source <(umbra completion bash)"}};
    for (const auto& [name, text] : examples) app_.get_subcommand(name)->footer(std::string("Examples:\n  ") + text);
  }

  void add_pair(CLI::App* command, const std::string& first, const std::string& second) {
    command->add_option("from", path_, first)->required();
    command->add_option("to", other_, second)->required();
  }

  std::vector<umbra::cli::CommandWords> command_words() const {
    std::vector<umbra::cli::CommandWords> commands;
    for (const CLI::App* command : app_.get_subcommands([](const CLI::App*) { return true; })) {
      umbra::cli::CommandWords words{command->get_name(), command->get_description(), {}};
      for (const CLI::Option* option : command->get_options())
        for (const std::string& name : option->get_lnames()) words.options.push_back("--" + name);
      commands.push_back(std::move(words));
    }
    return commands;
  }

  /// `umbra help run` is `umbra run --help`.
  int help(const std::string& command) const {
    if (!command.empty() && !actions_.count(command)) return unknown(command);
    std::string text = command.empty() ? app_.help() : app_.get_subcommand(command)->help(app_.get_name());
    std::fputs(text.c_str(), stdout);
    return 0;
  }

  int unknown(const std::string& word) const {
    std::string nearest;
    for (const auto& [name, action] : actions_)
      if (nearest.empty() || edit_distance(word, name) < edit_distance(word, nearest)) nearest = name;
    std::fprintf(stderr, "umbra: there is no command '%s'", word.c_str());
    if (edit_distance(word, nearest) <= 2) std::fprintf(stderr, "; did you mean '%s'?", nearest.c_str());
    std::fprintf(stderr, "\n`umbra --help` lists the commands.\n");
    return kUsage;
  }

  CLI::App app_{"Looks into, runs and changes exported programs (.pt2).", "umbra"};
  std::map<std::string, std::function<int()>> actions_;
  std::string path_, other_, text_;
  std::vector<std::string> paths_;
  umbra::cli::RunOptions run_;
  umbra::EstimateOptions costs_;
  umbra::cli::ViewOptions view_;
  umbra::cli::TrainOptions train_;
  bool graph_ = false, keep_ = false, facts_ = false;
};

}  // namespace

int main(int argc, char** argv) { return Program().main(argc, argv); }
