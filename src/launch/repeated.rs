//! Several jobs of one request, one after the other, each in fresh processes: what differs from job to job.

use std::ffi::OsString;

use super::simulated;
use crate::job::{Request, Scratch, Seed};
use crate::output::{self, Format};
use crate::result;

/// Exit codes from the best to the worst: passed, inconclusive, failed, could not run.
const CODES: [u8; 4] = [0, 3, 1, 2];

/// Starts the request as often as was asked for, until a job cannot run, and shows what the jobs say together.
pub(super) fn repeated(request: &Request, start: impl Fn(&Request) -> Result<u8, String>) -> Result<u8, String> {
    if request.launches == 1 {
        return start(request);
    }
    if request.dry_run {
        return start(&job(request, None, request.seed));
    }
    if !matches!(request.output.format, Format::Summary | Format::Table) {
        return Err("--launches prints a table over all jobs: --out keeps the result of each for other formats".into());
    }
    if request.files().any(|path| result::is_stdout(path)) {
        return Err("--launches writes a file for each job, and not to stdout".into());
    }
    let simulated = simulated::machine(&request.settings).is_some();
    if simulated && matches!(request.asked_seed()?, Some(Seed::Number(_))) {
        return Err(
            "--launches with one seed: a simulation gives the same again; leave --seed and --pair-with out".into()
        );
    }
    let scratch = Scratch::new()?;
    let jobs: Vec<Request> = (1..=request.launches)
        .map(|number| {
            // All jobs repeat the placements that were asked for, or each draws its own; a simulation's are repeatable.
            let seed = request.seed.or(simulated.then(|| Seed::Number(number.into())));
            let mut job = job(request, Some(number), seed);
            let kept = job.output.out.get_or_insert_with(|| scratch.path(&format!("{number}.json"))).clone();
            job.job_words.extend(["--out".into(), kept.into_os_string()]);
            job
        })
        .collect();
    for path in jobs.iter().flat_map(Request::files) {
        result::check_writable(path).map_err(|error| error.to_string())?;
    }
    let (mut files, mut worst) = (Vec::new(), 0);
    for (job, number) in jobs.iter().zip(1..) {
        request.say(&format!("job {number} of {}", request.launches));
        let code = start(job)?;
        worst = worst.max(rank(code));
        if CODES[worst] == 2 {
            eprintln!("tailback: job {number} of {} did not come to its end: no further job is run", request.launches);
            break;
        }
        let path = job.output.out.as_deref().expect("every job has a file");
        files.push((path.to_owned(), result::read(path).map_err(|error| error.to_string())?));
    }
    if files.len() > 1 {
        output::print(&output::over_jobs(&files))?;
        // Files of a scratch folder are gone with it.
        let kept: Vec<String> = match request.output.out {
            Some(_) => jobs.iter().filter_map(|job| Some(job.output.out.as_ref()?.display().to_string())).collect(),
            None => Vec::new(),
        };
        if let [first, .., last] = &kept[..files.len().min(kept.len())] {
            let all = kept[..files.len()].join(" ");
            request
                .say(&format!("wrote {first} to {last}; next: tailback report {all}, or compare {all} --with OTHERS"));
        }
    }
    if files.len() == request.launches as usize {
        worst = worst.max(rank(request.checks.check_variation(&files)?));
    }
    Ok(CODES[worst])
}

/// How bad a code is.
fn rank(code: u8) -> usize {
    CODES.iter().position(|of| *of == code).unwrap_or(CODES.len() - 1)
}

/// The request for one of the jobs, with what its ranks are told of it; a dry run has no number.
fn job(request: &Request, number: Option<u32>, seed: Option<Seed>) -> Request {
    let mut job = Request { launches: 1, one_of_several: true, seed, ..request.clone() };
    let mut words: Vec<OsString> = vec!["--launches".into(), "1".into(), "--one-of-several".into()];
    if let Some(number) = number {
        job.output.silent = !request.output.verbose;
        let output = &mut job.output;
        let files = [&mut output.out, &mut output.csv, &mut output.metrics, &mut job.checks.junit];
        files.into_iter().flatten().for_each(|path| *path = result::numbered(path, number));
        let output = &job.output;
        let given = [("--csv", &output.csv), ("--metrics", &output.metrics), ("--junit", &job.checks.junit)];
        for (option, path) in given.into_iter().filter_map(|(option, path)| Some((option, path.as_ref()?))) {
            words.extend([option.into(), path.into()]);
        }
        words.extend(job.output.silent.then(|| "--silent".into()));
        // Of a result to pair with, ranks read the seed themselves, and check that it can be repeated.
        words.extend(seed.into_iter().flat_map(|seed| ["--seed".into(), seed.to_string().into()]));
    }
    job.job_words = words;
    job
}
