//! The report as a browser shows it: on a wide screen, on a phone, and in print. Skipped with a line where there is no Chromium.
#![allow(clippy::unwrap_used)] // helpers of tests

use busbar_bench::report;
use busbar_bench::results::{Budget, Cell, Machine, Profile, Run, Step, System};
use std::path::{Path, PathBuf};
use std::process::Command;

const SYSTEMS: [&str; 6] =
    ["busbar", "nginx", "HAProxy", "Apache Camel", "Apache Synapse", "WSO2 Micro Integrator 4.4.0"];

/// Runs of all methods with as many systems as there are, whose figures are far apart.
fn runs() -> Vec<Run> {
    let scenarios = ["DirectProxy", "CBRTransportHeaderProxy", "XSLTProxy"];
    ["budgets", "2010", "6.5", "evaluate", "xslt", "tune", "profile", "soak", "generator"]
        .into_iter()
        .map(|method| {
            let mut cells = Vec::new();
            for (at, scenario) in scenarios.into_iter().enumerate() {
                for (number, system) in SYSTEMS.into_iter().enumerate() {
                    for (level, clients) in [20, 320, 2560].into_iter().enumerate() {
                        for size in [512, 10_240, 102_400] {
                            let rate = 60_000.0 / (1 + 9 * number) as f64 / (1 + at) as f64 * (1.0 + level as f64 / 10.0);
                            cells.push(cell(method, system, scenario, clients, size, rate));
                        }
                    }
                }
            }
            let systems = SYSTEMS.into_iter().map(|name| System {
                name: name.to_owned(),
                version: "1.2.3".to_owned(),
                command: format!("taskset -c 0 /usr/sbin/{name} -c /tmp/busbar-bench-12345-0/a-rather-long-name-of-a-file.conf -p /tmp"),
                warm_up: 10.0,
            });
            Run {
                method: method.to_owned(),
                begun: "2026-11-24 08:00:00 UTC".to_owned(),
                took: 431.0,
                command: "busbar bench all --out report --peer /opt/wso2mi-4.4.0".to_owned(),
                version: "busbar 0.1.0 (0123456789ab, release)".to_owned(),
                machine: Machine { processor: "AMD EPYC 7763 64-Core Processor".to_owned(), cores: 2, memory: 24_105, system: "Linux 6.1".to_owned(), load: 0.2 },
                systems: systems.collect(),
                absent: vec!["Apache Camel has no configuration for XSLTEnhancedProxy".to_owned()],
                cells,
                budgets: if method == "budgets" { budgets() } else { Vec::new() },
                profiles: if method == "profile" { profiles() } else { Vec::new() },
                ..Run::default()
            }
        })
        .collect()
}

fn cell(method: &str, system: &str, scenario: &str, clients: usize, size: usize, rate: f64) -> Cell {
    Cell {
        system: system.to_owned(),
        scenario: if method == "generator" { "echo".to_owned() } else { scenario.to_owned() },
        setting: if method == "evaluate" { "clients".to_owned() } else { String::new() },
        size,
        clients,
        at: f64::from(clients as u32) / 10.0,
        seconds: 1.0,
        right: rate as u64,
        rate,
        mean: 1e3 * clients as f64 / rate,
        p50: 900.0 * clients as f64 / rate,
        p90: 1500.0 * clients as f64 / rate,
        p99: 4000.0 * clients as f64 / rate,
        p999: 6000.0 * clients as f64 / rate,
        max: 9000.0 * clients as f64 / rate,
        cpu: Some(1e6 / rate),
        backend_cpu: Some(8.0),
        resident: Some(20.0 + 1e7 / rate),
        memory: if method == "soak" {
            (0..400).map(|at| (f64::from(at) * 30.0, 22.0 + f64::from(at % 7) / 10.0)).collect()
        } else {
            Vec::new()
        },
        ..Cell::default()
    }
}

fn budgets() -> Vec<Budget> {
    let values = ["512 B", "1 KB", "10 KB", "100 KB", "1 MB"].map(|size| (size.to_owned(), 0.78));
    vec![Budget {
        work: "direct proxy, CPU for each request".to_owned(),
        unit: "x nginx".to_owned(),
        bound: 0.75,
        values: values.to_vec(),
        ..Budget::default()
    }]
}

fn profiles() -> Vec<Profile> {
    let step = |name: &str, cpu: f64| Step {
        list: "in sequence of proxy EnrichBackAndForthProxy".to_owned(),
        name: name.to_owned(),
        place: "proxy-services/EnrichBackAndForthProxy.xml:12:9".to_owned(),
        runs: 1.0,
        cpu,
    };
    ["DirectProxy", "EnrichBackAndForthProxy", "PayloadFactory100Proxy"]
        .map(|scenario| Profile {
            scenario: scenario.to_owned(),
            size: 1024,
            requests: 40_000,
            whole: 24.0,
            watched: 25.5,
            kernel: 12.0,
            steps: vec![step("enrich", 2.5), step("send", 0.4)],
        })
        .to_vec()
}

/// What a page says about itself: how wide it is, and which texts of its charts leave their chart or run over another.
const LOOK: &str = r#"<script>
addEventListener("load", () => {
  const wrong = [];
  const width = document.documentElement.clientWidth, whole = document.documentElement.scrollWidth;
  if (whole > width + 1) wrong.push(`the page is ${whole} wide on ${width}`);
  const charts = [...document.querySelectorAll("svg")];
  for (const chart of charts) {
    const name = chart.getAttribute("aria-label"), frame = chart.getBoundingClientRect();
    if (frame.width < 200 || frame.height < 40) wrong.push(`${name}: ${frame.width} x ${frame.height}`);
    const boxes = [...chart.querySelectorAll("text")].map(text => [text.textContent, text.getBoundingClientRect()]);
    for (const [text, box] of boxes)
      if (box.left < frame.left - 2 || box.right > frame.right + 2 || box.top < frame.top - 2 || box.bottom > frame.bottom + 2) wrong.push(`${name}: "${text}" leaves the chart`);
    for (let a = 0; a < boxes.length; a++) for (let b = a + 1; b < boxes.length; b++) {
      const [p, q] = [boxes[a][1], boxes[b][1]];
      if (Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1.5 && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 3.5)
        wrong.push(`${name}: "${boxes[a][0]}" and "${boxes[b][0]}" overlap`);
    }
  }
  const small = [...document.querySelectorAll("td, p, li")].filter(one => parseFloat(getComputedStyle(one).fontSize) < 12);
  if (small.length) wrong.push(`${small.length} texts are smaller than 12 px`);
  document.title = `CHARTS ${charts.length} TABLES ${document.querySelectorAll("table").length} WRONG ${wrong.length} ${wrong.slice(0, 5).join("; ")} END`;
});
</script>"#;

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

struct Browser {
    program: PathBuf,
    work: PathBuf,
}

impl Browser {
    fn run(&self, name: &str, more: &[&str], page: &Path) -> String {
        let profile = self.work.join(name);
        let output = Command::new(&self.program)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--virtual-time-budget=5000",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(more)
            .arg(format!("file://{}", page.display()))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[test]
fn the_report_can_be_read_on_a_screen_on_a_phone_and_in_print() {
    let Some(program) = chromium() else {
        let needed = std::env::var_os("CI").is_some() && std::env::var_os("BUSBAR_SERVICES_ABSENT").is_none();
        assert!(!needed, "chromium is not installed: tests/services/install");
        println!("skipped: chromium is not installed (tests/services/install)");
        return;
    };
    let work = std::env::temp_dir().join(format!("busbar-bench-browser-{}", std::process::id()));
    std::fs::create_dir_all(&work).unwrap();
    let browser = Browser { program, work: work.clone() };
    let html = report::html(&runs());
    let (page, looked) = (work.join("report.html"), work.join("looked.html"));
    std::fs::write(&page, &html).unwrap();
    // On a phone a page is inside of a frame of that width: a window of this browser is not that small.
    let framed = |width: u32| {
        let inner = html.replacen("</head>", &format!("{LOOK}</head>"), 1);
        std::fs::write(work.join("inner.html"), inner).unwrap();
        let outer = format!(
            "<html><head><title>x</title></head><body style=\"margin:0\"><iframe id=\"f\" src=\"inner.html\" style=\"width:{width}px;height:3000px;border:0\"></iframe>\
             <script>setTimeout(() => {{ document.title = document.getElementById('f').contentDocument.title }}, 1500)</script></body></html>"
        );
        std::fs::write(&looked, outer).unwrap();
    };
    for (name, width) in [("screen", 1280), ("tablet", 768), ("phone", 360)] {
        framed(width);
        let more = ["--allow-file-access-from-files", "--window-size=1400,3000", "--dump-dom"];
        let page = browser.run(name, &more, &looked);
        let verdict =
            page.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).unwrap_or_default();
        assert!(
            verdict.starts_with("CHARTS ") && verdict.ends_with(" END"),
            "{name}: nothing was looked at: {verdict:?}"
        );
        let count = |word: &str| -> usize {
            let rest = verdict.split(&format!("{word} ")).nth(1).unwrap();
            rest.split(' ').next().unwrap().parse().unwrap()
        };
        assert!(count("CHARTS") > 30 && count("TABLES") > 20, "{name}: {verdict}");
        assert_eq!(count("WRONG"), 0, "{name}: {verdict}");
    }
    let pdf = work.join("report.pdf");
    browser.run("print", &[&format!("--print-to-pdf={}", pdf.display()), "--no-pdf-header-footer"], &page);
    let pdf = std::fs::read(&pdf).unwrap();
    let pages = pdf.windows(11).filter(|window| *window == b"/Type /Page").count();
    assert!(pdf.starts_with(b"%PDF-") && (5..200).contains(&pages), "{pages} pages in {} bytes", pdf.len());
    std::fs::remove_dir_all(work).unwrap();
}
