// The page: it lists the issues, and lists them anew when the server says that one has changed.
'use strict';
const at = id => document.getElementById(id);

async function call(method, path, body) {
    const json = body && !(body instanceof FormData);
    const answer = await fetch(path, {
        method, body: json ? JSON.stringify(body) : body,
        headers: json ? {'Content-Type': 'application/json'} : {}});
    const said = answer.status === 204 ? null : await answer.json();
    at('said').textContent = answer.ok ? '' : said.detail || said.title;
    return answer.ok ? said : null;
}

function line(issue) {
    const item = document.createElement('li');
    const button = document.createElement('button');
    item.className = issue.state;
    item.textContent = `#${issue.id} ${issue.title} (${issue.author}, ${issue.priority}) `;
    button.textContent = issue.state === 'open' ? 'Close' : 'Open again';
    button.onclick = () => call('PATCH', `/issues/${issue.id}`, {state: issue.state === 'open' ? 'closed' : 'open'});
    item.append(button);
    return item;
}

async function list() {
    const page = await call('GET', '/issues?limit=50');
    if (page)
        at('issues').replaceChildren(...page.items.map(line));
}

at('login').onsubmit = async event => {
    event.preventDefault();
    await call('POST', '/login', {name: event.target.name.value});
};

at('create').onsubmit = async event => {
    event.preventDefault();
    const {title, body, priority, file} = event.target;
    const issue = await call('POST', '/issues',
        {title: title.value, body: body.value, priority: Number(priority.value)});
    if (issue && file.files.length > 0) {
        const form = new FormData();
        form.append('file', file.files[0]);
        const made = await call('POST', `/issues/${issue.id}/files`, form);
        if (made)
            at('said').textContent = `kept as /files/${made.name}`;
    }
    if (issue)
        event.target.reset();
};

new EventSource('/events').addEventListener('issue', list);
list();
