//! What a command leaves: shown, kept and checked; or, by a rank that this program started, handed over.

use std::path::{Path, PathBuf};

use clap::ColorChoice;

use super::locate_selection::LocateSelection;
use super::request::{Checks, Request, StudySelection};
use super::study::Study;
use crate::assemble::now_rfc3339;
use crate::backend::{self, is_reporting_rank};
use crate::output::{self, Format};
use crate::result::{self, Command, ModelResults, ResultFile};

/// Where rank 0 leaves the result, for the process that started it.
pub(crate) const RESULT_VARIABLE: &str = "TAILBACK_RESULT";

/// The same as a path, in a rank that was started by [`super::local`].
pub(crate) fn handed_over() -> Option<PathBuf> {
    std::env::var_os(RESULT_VARIABLE).map(Into::into)
}

/// Prints the results, then keeps them: what cannot be written has at least been seen. A rank that was started by
/// [`super::local`] hands them over instead.
pub fn show(request: &Request, file: &ResultFile) -> u8 {
    if let Some(path) = handed_over() {
        return match result::write(&path, file) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("tailback: error: {error}");
                2
            }
        };
    }
    let wanted = &request.output;
    // A file on stdout is there for a program, which would not read a table before it.
    let silent = wanted.silent || request.files().any(|path| result::is_stdout(path));
    // What a map is measured for is shown in its place.
    let locate = request.study.as_ref().and_then(|of| of.locate.as_ref());
    let path = wanted.out.as_deref().unwrap_or(Path::new("the map"));
    let located = locate.map(|of| of.located(&[(path, file)]));
    let render = |format: Format, verbose: bool| match &located {
        Some(Ok(located)) => LocateSelection::text(located, format, verbose),
        Some(Err(_)) => String::new(),
        None => format.render(file, verbose),
    };
    let text = || render(wanted.format, wanted.verbose);
    // What launchers give their ranks looks like a terminal and ends in a file.
    let color = if backend::rank().is_some() && wanted.colors.color == ColorChoice::Auto {
        ColorChoice::Never
    } else {
        wanted.colors.color
    };
    let printed = if silent { Ok(0) } else { output::print_coloured(&text(), color) };
    let kept = wanted.out.as_deref().map_or(Ok(()), |path| {
        result::write(path, file).map_err(|error| error.to_string())?;
        if !silent {
            let path = path.display();
            request.say(&format!("wrote {path}; next: tailback report {path}"));
        }
        Ok(())
    });
    let csv = wanted.csv.as_deref().map_or(Ok(()), |path| {
        result::write_text(path, &render(Format::Csv, false)).map_err(|error| error.to_string())
    });
    let checks = match (locate, &located) {
        (Some(of), Some(Ok(located))) => of.checks(located, &[(path, file)]),
        (_, Some(Err(error))) => Err(error.clone()),
        _ => Ok(request.checks.check(file)),
    };
    let metrics = wanted.metrics.as_deref().map_or(Ok(()), |path| {
        let text = output::openmetrics_of_job(file, checks.as_deref().unwrap_or_default());
        result::write_text(path, &text).map_err(|error| error.to_string())
    });
    let drawn = request.study.as_ref().map_or(Ok(()), |of| draw(of, file));
    let of_study = locate.map(|of| Checks { junit: of.junit.clone(), ..Checks::default() });
    let checked = checks.and_then(|checks| of_study.as_ref().unwrap_or(&request.checks).conclude(&checks));
    let ended = if file.interrupted || kept.is_err() { Ok(()) } else { request.remove_journal() };
    if let (true, Some(path), Some(out)) = (file.interrupted, request.journal(), &wanted.out)
        && path.exists()
    {
        request.say(&format!("to go on where it ended: the same command with --resume {}", out.display()));
    }
    let mut code = (*checked.as_ref().unwrap_or(&0)).max(u8::from(has_failed(file)));
    if (file.interrupted && file.command != Command::Congest) || is_left_changed(file) {
        code = 2;
    }
    for problem in
        [printed.map(drop), kept, csv, metrics, drawn, checked.map(drop), ended].into_iter().filter_map(Result::err)
    {
        eprintln!("tailback: error: {problem}");
        code = 2;
    }
    code
}

/// The request with a file for its result, where none was named and one is wanted: in the working folder, by what is run and
/// when. A folder that cannot be written to is no reason not to measure.
#[must_use]
pub fn with_result_file(mut request: Request) -> Request {
    let output = &request.output;
    // Of suspects as JSON, the file has what they are found by.
    let is_shown = output.format == Format::Json && request.study.as_ref().is_none_or(|of| of.locate.is_none());
    let is_elsewhere = output.out.is_some() || is_shown || handed_over().is_some();
    if is_elsewhere || output.no_out || request.dry_run || !is_reporting_rank() {
        return request;
    }
    let label = output.label.as_deref().unwrap_or(request.command.word());
    let label: String = label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let now: String = now_rfc3339().chars().filter(char::is_ascii_digit).collect();
    let (day, time) = now.split_at(8);
    let name = |more: String| PathBuf::from(format!("tailback-{label}-{day}-{time}{more}.json"));
    let more = (2..1000).map(|number| format!("-{number}"));
    let path = std::iter::once(String::new()).chain(more).map(name).find(|path| !path.exists());
    let path = path.unwrap_or_else(|| name(String::new()));
    match result::check_writable(&path) {
        Ok(()) => request.output.out = Some(path),
        Err(error) => request.say(&format!("the result is not kept: {error}")),
    }
    request
}

/// Whether a setting that was changed is not as before.
fn is_left_changed(file: &ResultFile) -> bool {
    file.tuning.as_ref().is_some_and(|of| of.put_back == Some(false))
}

/// Whether a study's own checks failed.
fn has_failed(file: &ResultFile) -> bool {
    let failed = |models: &ModelResults| models.hpcc.as_ref().is_some_and(|hpcc| hpcc.failed().next().is_some());
    file.studies().iter().any(|(_, models)| failed(models))
}

/// Draws the first graph that was asked for, if a drawing was.
fn draw(of: &StudySelection, file: &ResultFile) -> Result<(), String> {
    let (Some(path), Study::Contention(study)) = (&of.draw, &of.study) else { return Ok(()) };
    let mut measured = file.studies().into_iter().filter_map(|(_, models)| models.contention.as_ref());
    let first = study
        .graphs
        .first()
        .and_then(|(name, _)| measured.find_map(|study| study.graphs.iter().find(|graph| graph.name == *name)));
    match first {
        Some(graph) => output::draw(path, graph),
        None => Err(format!("{} was not drawn: its graph was not measured", path.display())),
    }
}
